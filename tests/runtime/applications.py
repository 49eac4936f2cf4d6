"""Processes that run `tests.runtime.app`, and what they said."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


class Application:
    """One member, over all its lives."""

    def __init__(self, **options: Any) -> None:
        self.me = options["me"]
        self.options = options
        self.lives: list[list[str]] = []
        self.errors: list[str] = []
        self._process: subprocess.Popen[str] | None = None
        self._threads: list[threading.Thread] = []

    def start(self, **changes: Any) -> None:
        assert self._process is None
        options = json.dumps({**self.options, **changes})
        self._process = process = subprocess.Popen(
            [sys.executable, "-m", "tests.runtime.app", options],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        life: list[str] = []
        self.lives.append(life)
        for stream, lines in ((process.stdout, life), (process.stderr, self.errors)):
            assert stream is not None
            thread = threading.Thread(target=_listen, args=(stream, lines), daemon=True)
            thread.start()
            self._threads.append(thread)

    @property
    def process(self) -> subprocess.Popen[str]:
        assert self._process is not None
        return self._process

    def kill(self) -> None:
        self.process.kill()
        self._end()

    def stop(self) -> None:
        """Let it leave as it should."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self._end()

    def said(self, word: str) -> list[list[str]]:
        """What followed that word in its lines, in all its lives."""
        return [
            line.split()[1:] for life in self.lives for line in life if line.split()[:1] == [word]
        ]

    def got(self) -> list[tuple[int, str, int]]:
        return [(int(place), sender, int(number)) for place, sender, number in self.said("got")]

    def _end(self) -> None:
        self.process.wait(timeout=20)
        for thread in self._threads:
            thread.join(timeout=20)
        self._threads.clear()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream is not None
            with contextlib.suppress(BrokenPipeError):
                stream.close()
        self._process = None


@contextlib.contextmanager
def running(*applications: Application) -> Iterator[None]:
    try:
        yield
    finally:
        for application in applications:
            with contextlib.suppress(AssertionError):
                application.kill()


def wait_until(condition: Callable[[], object], *, within_s: float = 30) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def _listen(stream: Any, lines: list[str]) -> None:
    for line in stream:
        lines.append(line.rstrip("\n"))  # noqa: PERF401 (others look while it grows)
