"""`ordercast run --live` as a user starts it, and a browser's manners without a browser."""

from __future__ import annotations

import http.client
import json
import queue
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import Message
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit

__all__ = ["Answer", "LiveRun", "Visitor", "ask", "live_run"]

PATIENCE_S = 120.0


class LiveRun:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.said: list[str] = []
        self._lines: queue.Queue[str] = queue.Queue()
        self._hearing = threading.Thread(target=self._hear, daemon=True)
        self._hearing.start()
        self.address = self.hear(r"^live: (http://127\.0\.0\.1:\d+/\?token=\S+)$")[1]

    @property
    def port(self) -> int:
        return urlsplit(self.address).port or 0

    def hear(self, pattern: str) -> re.Match[str]:
        """The next line on stderr that looks like this."""
        end = monotonic() + PATIENCE_S
        while True:
            line = self._lines.get(timeout=end - monotonic())
            assert line, f"it ended without saying {pattern!r}: {self.said}"
            if found := re.search(pattern, line.rstrip("\n")):
                return found

    def ends(self) -> tuple[int, str]:
        """Its exit code, and what it said on stdout."""
        assert self.process.stdout is not None
        out = self.process.stdout.read()
        self._hearing.join()
        return self.process.wait(PATIENCE_S), out

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def _hear(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said.append(line)
            self._lines.put(line)
        self._lines.put("")


@contextmanager
def live_run(directory: Path, *arguments: str) -> Iterator[LiveRun]:
    command = [sys.executable, "-m", "ordercast", "run", "--live", "--here", *arguments]
    process = subprocess.Popen(
        command, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with process:
        try:
            yield LiveRun(process)
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                try:
                    process.wait(PATIENCE_S)
                except subprocess.TimeoutExpired:
                    process.kill()
                    raise


class Answer(NamedTuple):
    status: int
    headers: Message
    body: str


def ask(address: str, method: str, path: str, body: str | None = None, **headers: str) -> Answer:
    with _opened(address, method, path, body, headers) as answer:
        return Answer(answer.status, answer.headers, answer.read().decode())


def _opened(
    address: str, method: str, path: str, body: str | None, headers: dict[str, str]
) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=PATIENCE_S)
    connection.request(method, path, body, headers | {"Connection": "close"})
    return connection.getresponse()


class Visitor:
    """Comes with the address, keeps its cookie, says where it comes from."""

    def __init__(self, address: str) -> None:
        self._address = address
        parts = urlsplit(address)
        welcome = ask(address, "GET", f"/?{parts.query}")
        assert welcome.status == 303, welcome
        cookie = welcome.headers["Set-Cookie"].partition(";")[0]
        self._manners = {"Cookie": cookie, "Origin": f"http://{parts.netloc}"}

    def ask(self, method: str, path: str, body: str | None = None, **headers: str) -> Answer:
        return ask(self._address, method, path, body, **self._manners | headers)

    def act(self, act: str, process: int | None = None) -> str | None:
        """What is in the way, if anything is."""
        answer = self.ask("POST", "/act", json.dumps({"act": act, "process": process}))
        assert answer.status == 200, answer
        error: str | None = json.loads(answer.body)["error"]
        return error

    @contextmanager
    def events(self) -> Iterator[Events]:
        with _opened(self._address, "GET", "/events", None, self._manners) as answer:
            yield Events(answer)


class Events:
    """A stream of server-sent events, one after the other."""

    def __init__(self, answer: http.client.HTTPResponse) -> None:
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        self._answer = answer

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> tuple[str, dict[str, Any]]:
        fields: dict[str, str] = {}
        while line := self._answer.readline().decode():
            if line != "\n":
                name, _, value = line.rstrip("\n").partition(": ")
                fields[name] = value
            elif "data" in fields:
                return fields["event"], json.loads(fields["data"])
        raise StopIteration
