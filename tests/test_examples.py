"""The examples, as someone who tries them: real processes, and what they print is checked."""

from __future__ import annotations

import importlib
import json
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.runtime.test_join import addresses

EXAMPLES = Path(__file__).parent.parent / "examples"
PROGRAMS = ["chat", "kv", "shared_list"]
LINES_MAX = 150
WAIT_S = 60

pytestmark = pytest.mark.timeout(150)


def started(program: str, *names: str) -> dict[str, subprocess.Popen[str]]:
    peers = [f"{name}={where}" for name, where in addresses(*names).items()]
    return {
        name: subprocess.Popen(
            [sys.executable, str(EXAMPLES / f"{program}.py"), "--me", name, "--peers", *peers],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in names
    }


def group(program: str, **lines: list[str]) -> dict[str, list[str]]:
    """Start a member for each name, give each its lines, and say what each has printed."""
    members = started(program, *lines)
    try:
        for name, member in members.items():
            assert member.stdin is not None
            member.stdin.write("".join(f"{line}\n" for line in lines[name]))
            member.stdin.flush()  # and leave it open: who leaves early cannot help the others
        printed: dict[str, list[str]] = {name: [] for name in members}
        for name, member in members.items():
            assert member.stdout is not None
            while printed[name][-1:] != ["what is 'end'?"]:
                line = member.stdout.readline()
                assert line, f"{name} has ended"
                printed[name].append(line.rstrip("\n"))
        return {name: said[:-1] for name, said in printed.items()}
    finally:
        for member in members.values():
            member.communicate(timeout=WAIT_S)
            assert member.returncode == 0


@pytest.mark.parametrize("program", PROGRAMS)
def test_it_is_short(program: str) -> None:
    assert len((EXAMPLES / f"{program}.py").read_text().splitlines()) < LINES_MAX


@pytest.mark.parametrize(
    ("program", "last_words"),
    [
        ("kv", r"all equal, d too; \['[abc]'\] won the lead; 3 times 20 additions make 60"),
        ("chat", "12 replies, none before its question"),
        ("shared_list", "all three have: One (quick brown|brown quick) fox jumps"),
    ],
)
def test_the_demonstration(program: str, last_words: str) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{program}.py"), "--demo"],
        capture_output=True,
        text=True,
        timeout=WAIT_S,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(last_words, done.stdout.splitlines()[-1])


@pytest.mark.parametrize("program", PROGRAMS)
def test_who_one_is_has_to_be_said(program: str) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{program}.py")], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "say who this is with --me and --peers, or --demo" in done.stderr


class Replicas:
    """Of the store, as the people in front of them."""

    def __init__(self, *names: str) -> None:
        self.places = addresses(*names)
        peers = [f"{name}={where}" for name, where in self.places.items()]
        self._running: dict[str, subprocess.Popen[str]] = {}
        for name in names:
            self.start(name, "--peers", *peers)

    def __enter__(self) -> Replicas:
        return self

    def __exit__(self, *_: object) -> None:
        for name in self._running:
            self.kill(name)

    def start(self, name: str, *options: str) -> None:
        self._running[name] = subprocess.Popen(
            [sys.executable, str(EXAMPLES / "kv.py"), "--me", name, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def kill(self, name: str) -> None:
        self._running[name].kill()
        self._running[name].communicate(timeout=WAIT_S)

    def tell(self, name: str, *lines: str) -> None:
        stdin = self._running[name].stdin
        assert stdin is not None
        print(*lines, sep="\n", file=stdin, flush=True)

    def hear(self, name: str) -> str:
        stdout = self._running[name].stdout
        assert stdout is not None
        return stdout.readline().rstrip("\n")

    def ask(self, name: str, *lines: str) -> str:
        self.tell(name, *lines)
        return self.hear(name)


def test_all_replicas_of_the_store_end_equal_and_one_caller_wins_each_race() -> None:
    races, names = range(10), ("a", "b", "c", "d")
    with Replicas(*names) as replicas:
        for name in names:
            replicas.tell(
                name,
                *(f"cas race{number} - {name}" for number in races),
                *(f"put key{number} {name}" for number in races),
                *["add total"] * 5,
                "cas race0 nobody x",
            )
        said = {name: [replicas.hear(name) for _ in range(len(races) + 1)] for name in names}
        dumps = {replicas.ask(name, "sync", "dump") for name in names}
    assert len(dumps) == 1, "every replica holds the same"
    data = json.loads(dumps.pop())
    assert data["total"] == "20"
    for number in races:
        winners = [name for name, lines in said.items() if f"won race{number}" in lines]
        assert winners == [data[f"race{number}"]], "one winner, and everyone knows who"
        assert data[f"key{number}"] in said
    for lines in said.values():
        assert lines[len(races)] == "lost race0"


def test_replicas_of_the_list_converge() -> None:
    chance = random.Random(7)
    words = ["fox ", "dog ", "über ", "x"]

    def edits() -> list[str]:
        """Places that exist for sure: everyone has typed at least so much."""
        typing = [f"type {chance.randrange(5)} {chance.choice(words)}" for _ in range(20)]
        deleting = [f"delete {chance.randrange(5)} 1" for _ in range(5)]
        mixed = [*typing, *deleting]
        chance.shuffle(mixed)
        return ["type 0 hello", "sync", *mixed, "sync", "show", "end"]

    said = group("shared_list", a=edits(), b=edits(), c=edits())
    [text] = {lines[-1] for lines in said.values()}
    assert len(text) > 20


Operation = list[Any]


@given(st.data())
def test_the_list_converges_whatever_causal_order_its_edits_come_in(data: st.DataObject) -> None:
    """Three replicas that edit and hear of each other at random moments."""
    sys.path.insert(0, str(EXAMPLES))
    try:
        module = importlib.import_module("shared_list")
    finally:
        sys.path.remove(str(EXAMPLES))
    names = "abc"
    replicas = {name: module.Rga() for name in names}
    sent: dict[str, list[tuple[Operation, dict[str, int]]]] = {name: [] for name in names}
    seen = {name: dict.fromkeys(names, 0) for name in names}

    def edit(me: str) -> None:
        rga = replicas[me]
        ids = rga.ids()
        if ids and data.draw(st.booleans()):
            operation = ["delete", data.draw(st.sampled_from(ids))]
        else:
            after = data.draw(st.sampled_from([module.START, *ids]))
            operation = ["insert", after, (rga.clock + 1, me), data.draw(st.sampled_from("xyz"))]
        sent[me].append((operation, dict(seen[me])))
        seen[me][me] += 1
        rga.apply(operation)

    def hear(me: str) -> bool:
        """One operation of someone else that causal order allows now."""
        ready = [
            other
            for other in names
            if other != me
            and seen[me][other] < len(sent[other])
            and all(seen[me][n] >= c for n, c in sent[other][seen[me][other]][1].items())
        ]
        if ready:
            other = data.draw(st.sampled_from(ready))
            replicas[me].apply(sent[other][seen[me][other]][0])
            seen[me][other] += 1
        return bool(ready)

    for _ in range(data.draw(st.integers(1, 30))):
        me = data.draw(st.sampled_from(names))
        if data.draw(st.booleans()):
            edit(me)
        else:
            hear(me)
    for me in names:
        while hear(me):
            pass
    assert all(sum(counts.values()) == sum(map(len, sent.values())) for counts in seen.values())
    assert len({str(rga) for rga in replicas.values()}) == 1


@pytest.mark.parametrize("dead", ["a", "c"])
def test_the_store_goes_on_without_one_replica(dead: str) -> None:
    """Even if it is the one that leads, which the first one by name does until then."""
    names = ("a", "b", "c")
    with Replicas(*names) as replicas:
        won = [replicas.ask(name, f"cas {name} - 1") for name in names]
        assert won == ["won a", "won b", "won c"]
        replicas.kill(dead)
        living = [name for name in names if name != dead]
        assert [replicas.ask(name, f"cas {dead} 1 2") for name in living] == [
            f"won {dead}",
            f"lost {dead}",
        ]
        dumps = {replicas.ask(name, "sync", "dump") for name in living}
        assert [json.loads(dump)[dead] for dump in dumps] == ["2"]
        # It has kept nothing: so it comes back as a newcomer, and gets the state from the others.
        peers = [f"{name}={where}" for name, where in replicas.places.items()]
        replicas.start(dead, "--peers", *peers)
        assert {replicas.ask(dead, "sync", "dump")} == dumps
        assert replicas.ask(living[0], "members").split() == [*names]


def test_the_store_takes_newcomers_and_lets_replicas_go(tmp_path: Path) -> None:
    with Replicas("a") as replicas:
        assert replicas.ask("a", "cas k - 1") == "won k"
        for name, where in addresses("b", "c").items():
            options = ("--via", replicas.places["a"], "--journal", str(tmp_path / name))
            replicas.start(name, *options, "--listen", where)
            assert json.loads(replicas.ask(name, "sync", "dump")) == {"k": "1"}
        assert replicas.ask("c", "members") == "a b c"
        assert replicas.ask("c", "remove a", "put k 2", "members") == "b c"
        assert replicas.ask("b", "sync", "dump") == '{"k": "2"}'
        sorry = replicas.ask("a", "put k 3")
        assert sorry.startswith("sorry: a was removed from 'kv': to be a member again")
