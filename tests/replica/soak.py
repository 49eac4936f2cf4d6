"""Replicas as real processes, over mutual TLS, with journals; and whatever befalls them. By hand:

    python -m tests.replica.soak --minutes 5 [--seed 1]

They are killed, stopped, robbed of their journals, removed and joined by others while all of them
give commands. At the end every one that has a seat holds the same, whatever was ever done at a
place is what all others did there, and what was answered is there, once.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from queue import Empty, Queue

from ordercast.runtime.keys import make_group
from tests.runtime.test_join import addresses

__all__ = ["Soak"]

NAMES = ("a", "b", "c", "d", "e")
FOUNDERS = NAMES[:3]
WAIT_S = 60.0


class Child:
    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.lines: Queue[str] = Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put("")

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            print(line, file=self.process.stdin, flush=True)

    def hear(self, wait_s: float = WAIT_S) -> str:
        try:
            return self.lines.get(timeout=wait_s)
        except Empty:
            return ""

    def end(self) -> None:
        self.process.kill()
        self.process.send_signal(signal.SIGCONT)
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()


class Soak:
    def __init__(self, home: Path, seed: int) -> None:
        self.home = home
        self.chance = random.Random(f"replicas {seed}")
        self.places = addresses(*NAMES)
        self.children: dict[str, Child] = {}
        self.story: list[str] = []
        make_group(home / "keys", "soak", NAMES)

    def start(self, name: str) -> None:
        founders = {n: self.places[n] for n in FOUNDERS}
        others = ",".join(place for n, place in self.places.items() if n != name)
        where = json.dumps(founders) if name in founders else others
        program = (sys.executable, "-m", "tests.replica.child", name, str(self.home))
        self.children[name] = Child([*program, self.places[name], where, str(self.home / "keys")])

    def begin(self) -> None:
        for name in FOUNDERS:
            self.start(name)
        for name in FOUNDERS:
            assert self.children[name].hear() == "here"

    def befall(self) -> None:
        """One thing, to one of them, while all others are there."""
        self.everyone_is_there()
        name = self.chance.choice(list(self.children))
        child = self.children[name]
        ill = self.chance.choice(["kill", "kill", "stop", "wipe", "add", "remove"])
        self.story.append(f"{ill} {name}")
        match ill:
            case "kill" | "wipe":
                child.end()
                if ill == "wipe":
                    shutil.rmtree(self.home / name)
                time.sleep(self.chance.random() * 3)
                self.start(name)
            case "stop":
                child.process.send_signal(signal.SIGSTOP)
                time.sleep(self.chance.random() * 4)
                child.process.send_signal(signal.SIGCONT)
            case "add":
                if new := [each for each in NAMES if each not in self.children]:
                    self.start(new[0])
            case "remove" if len(self.children) > 3:
                other = self.chance.choice([n for n in self.children if n != name])
                child.tell(f"remove {other}")
                assert self._hear(name, "removed") == "removed"
                self.children.pop(other).end()
                shutil.rmtree(self.home / other)

    def everyone_is_there(self) -> dict[str, list[object]]:
        """In the same generation, with everyone who is running among its members."""
        end = time.monotonic() + WAIT_S
        while True:
            told = {name: self._state(name) for name in self.children}
            rolls = {json.dumps(state[:2]) for state in told.values()}
            if len(rolls) == 1 and set(json.loads(rolls.pop())[1]) == set(self.children):
                return told
            assert time.monotonic() < end, f"they do not come together: {told}"
            time.sleep(0.1)

    def _state(self, name: str) -> list[object]:
        self.children[name].tell("state")
        found: list[object] = json.loads(self._hear(name, "["))
        return found

    def _hear(self, name: str, start: str) -> str:
        while line := self.children[name].hear():
            if line.startswith(start):
                return line
            assert line in ("here", "quiet"), f"{name} said {line}"
        raise AssertionError(f"{name} says nothing any more")

    def check(self) -> int:
        """How many commands were carried out."""
        for child in self.children.values():
            child.tell("quiet")
        states = self.everyone_is_there()
        digests = {json.dumps(state[2:]) for state in states.values()}
        end = time.monotonic() + WAIT_S
        while len(digests) > 1 and time.monotonic() < end:
            digests = {json.dumps(self._state(name)[2:]) for name in self.children}
        assert len(digests) == 1, f"replicas differ: {digests}"
        done: dict[int, str] = {}
        for line in self._written("did "):
            place, item = line.split(" ", 1)
            assert done.setdefault(int(place), item) == item, (
                f"{place}: {item} / {done[int(place)]}"
            )
        assert len(set(done.values())) == len(done), "something was done twice"
        for line in self._written("got "):
            place, item = line.split(" ", 1)
            assert done[int(place)] == item, f"{item} was answered, and is lost"
        assert json.loads(digests.pop())[0] == len(done)
        return len(done)

    def _written(self, kind: str) -> Iterator[str]:
        for file in self.home.glob("*.log"):
            text = file.read_text()
            for line in text[: text.rfind("\n") + 1].splitlines():  # a kill may cut the last
                if line.startswith(kind):
                    yield line.removeprefix(kind)

    def end(self) -> None:
        for child in self.children.values():
            child.end()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        soak = Soak(Path(home), options.seed)
        try:
            soak.begin()
            end = time.monotonic() + 60 * options.minutes
            while time.monotonic() < end:
                soak.befall()
                print(soak.story[-1], flush=True)
            print(f"{soak.check()} commands, {len(soak.story)} ills: all equal, nothing lost")
        finally:
            soak.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
