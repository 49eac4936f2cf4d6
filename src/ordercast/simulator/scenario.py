"""Scenario files: a story that someone who knows the algorithm, and not Python, can read.

    # p2 hears the answer before the question and must hold it.
    pass 1->2
    ----
    p2 holds 1:1, waiting for 0:1

A block is a command, a line of dashes and what the command must print. Whoever writes a story need
write only the commands, one a line. They are:

    group 3 causal_vector [over majority [threshold K]]    begins the story
    send P [to Q,R] [TEXT]                       process P sends
    pass P->Q [K]                                the oldest (or K-th) packet on the link arrives
    pass all                                     everything arrives, oldest link first, until rest
    crash P                                      process P stops for good
    ring P                                       the timers of process P run out
    suspect P Q                                  process P is told that Q may have crashed
    links                                        lists the packets that are under way
    verdicts                                     the judge's word on the story so far
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby

from ordercast.errors import OrdercastError, UsageError
from ordercast.protocols import catalog
from ordercast.protocols.messages import message_of
from ordercast.protocols.stack import Stack
from ordercast.simulator.plan import Network, check_size
from ordercast.simulator.world import World
from ordercast.trace.directory import Trace
from ordercast.trace.event import Event
from ordercast.trace.manifest import Manifest

__all__ = ["Block", "Judge", "Scenario", "parse", "render"]

Judge = Callable[[Trace], Iterable[str]]
RULE = "----"


@dataclass(frozen=True, slots=True)
class Block:
    comment: tuple[str, ...]
    command: str
    output: tuple[str, ...]


def parse(text: str) -> list[Block]:
    """The blocks of a file. What a command printed is below its line of dashes, up to the next
    blank line; all other lines are commands."""
    blocks: list[Block] = []
    lines = text.splitlines()
    for blank, group in groupby(lines, key=lambda line: not line.strip()):
        if not blank:
            blocks += _parse(list(group))
    return blocks


def _parse(rows: list[str]) -> Iterator[Block]:
    """Lines without a blank one between them."""
    rule = rows.index(RULE) if RULE in rows else len(rows)
    comment: list[str] = []
    commands: list[tuple[tuple[str, ...], str]] = []
    for row in rows[:rule]:
        if row.startswith("#"):
            comment.append(row)
        else:
            commands.append((tuple(comment), row.strip()))
            comment = []
    if comment or not commands:
        commands.append((tuple(comment), ""))
    *others, (about, last) = commands
    yield from (Block(before, command, ()) for before, command in others)
    yield Block(about, last, tuple(rows[rule + 1 :]))


def render(blocks: Iterable[Block]) -> str:
    """The file again, as `parse` would read it."""
    parts = []
    for block in blocks:
        rows = [*block.comment]
        if block.command:
            rows += [block.command, RULE, *block.output]
        parts.append("\n".join(rows))
    return "\n\n".join(parts) + "\n"


class Scenario:
    """Plays a story by hand and writes the trace of it."""

    def __init__(
        self,
        *,
        judge: Judge | None = None,
        build: Callable[[int, int], Stack] | None = None,
    ) -> None:
        """`build` puts other protocol objects in the place of those that the story names."""
        self._build = build
        self.events: list[Event] = []
        self._judge = judge
        self._world: World | None = None
        self._manifest: Manifest | None = None
        self._lines: list[str] = []

    def play(self, blocks: Iterable[Block]) -> list[Block]:
        """The same blocks with what their commands really print."""
        return [
            Block(block.comment, block.command, tuple(self.command(block.command)))
            for block in blocks
        ]

    def command(self, text: str) -> list[str]:
        self._lines = []
        if text:
            try:
                self._do(text)
            except OrdercastError as error:
                self._lines.append(f"refused: {error}")
        return self._lines

    def trace(self) -> Trace:
        if self._manifest is None:
            raise UsageError("a scenario begins with 'group': how many, and which ordering")
        return Trace.of(replace(self._manifest, quiesced=self._playing().at_rest()), self.events)

    def _do(self, text: str) -> None:
        for pattern, action in self._commands.items():
            if found := re.fullmatch(pattern, text):
                action(self, *found.groups())
                return
        raise UsageError(
            f"the command {text[:60]!r} is none that a scenario knows: write group, send, pass, "
            "crash, ring, suspect, links or verdicts, as docs/simulator.md shows them"
        )

    def _group(
        self, size: str, ordering: str, dissemination: str | None, threshold: str | None
    ) -> None:
        quorum = None if threshold is None else int(threshold)
        dissemination = dissemination or catalog.choose(ordering)[1]
        count = int(size[:20])  # more digits than any group has
        check_size(count)
        self._manifest = Manifest(
            run="scenario",
            processes=tuple(f"p{process}" for process in range(count)),
            order=ordering,
            dissemination=dissemination,
        )
        self._world = World(
            build=self._build
            or (
                lambda me, size: catalog.build(ordering, dissemination, me, size, threshold=quorum)
            ),
            size=count,
            run="scenario",
            write=self.events.append,
            network=Network(),
            narrate=self._lines_append,
            by_hand=True,
        )

    def _lines_append(self, line: str) -> None:
        self._lines.append(line)

    def _send(self, process: str, to: str | None, payload: str | None) -> None:
        destinations = None if to is None else tuple(int(q) for q in to.split(","))
        world = self._playing()
        world.now_us += 1
        world.send(self._member(process), (payload or "").encode(), destinations)

    def _pass(self, source: str, to: str, index: str | None) -> None:
        world = self._playing()
        letters = world.waiting.get((int(source), int(to)), [])
        position = int(index or 1) - 1
        if not 0 <= position < len(letters):
            raise UsageError(f"{len(letters)} packets are under way from p{source} to p{to}")
        world.now_us += 1
        world.pass_on(int(source), int(to), position)

    def _pass_all(self) -> None:
        world = self._playing()
        while under_way := [link for link, letters in sorted(world.waiting.items()) if letters]:
            world.now_us += 1
            world.pass_on(*under_way[0])

    def _crash(self, process: str) -> None:
        world = self._playing()
        world.now_us += 1
        world.crash(self._member(process))

    def _ring(self, process: str) -> None:
        world = self._playing()
        world.now_us += 1
        world.ring(self._member(process))

    def _suspect(self, process: str, suspected: str) -> None:
        world = self._playing()
        world.now_us += 1
        world.suspect(self._member(process), self._member(suspected))

    def _links(self) -> None:
        for (source, to), letters in sorted(self._playing().waiting.items()):
            if letters:
                names = (message_of(letter.packet) for letter in letters)
                texts = ", ".join("control" if m is None else str(m.id) for m in names)
                self._lines.append(f"{source}->{to}: {texts}")

    def _verdicts(self) -> None:
        if self._judge is None:
            raise UsageError("nobody judges here: write the trace and use 'ordercast verify'")
        self._lines.extend(self._judge(self.trace()))

    def _playing(self) -> World:
        if self._world is None:
            raise UsageError("a scenario begins with 'group': how many, and which ordering")
        return self._world

    def _member(self, process: str) -> int:
        if int(process) >= self._playing().size:
            raise UsageError(f"there is no process {process} in this group")
        return int(process)

    _commands: dict[str, Callable[..., None]] = {  # noqa: RUF012
        r"group (\d+) (\w+)(?: over (\w+)(?: threshold (\d+))?)?": _group,
        r"send (\d+)(?: to (\d+(?:,\d+)*))?(?: (.+))?": _send,
        r"pass (\d+)->(\d+)(?: (\d+))?": _pass,
        r"pass all": _pass_all,
        r"crash (\d+)": _crash,
        r"ring (\d+)": _ring,
        r"suspect (\d+) (\d+)": _suspect,
        r"links": _links,
        r"verdicts": _verdicts,
    }
