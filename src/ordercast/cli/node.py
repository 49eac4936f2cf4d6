"""Be one member of a group that a TOML file describes: lines in are sent, deliveries come out.

Lines on stdin are messages; what is delivered is printed, whoever sent it. At the end of stdin the
member leaves when everyone present has delivered what it sent and all that was delivered here is
printed, unless it is told to stay; on SIGTERM, SIGINT and SIGHUP it leaves at once, with exit code
0; nohup keeps SIGHUP from it. It tells systemd when it has joined (`Type=notify`), and that it does
not hang (`WatchdogSec=`).

example:
  ordercast node group.toml --me a --stay
  ordercast node group.toml --me a --addressed      # "b,c text" is for two, "* text" for all
  ordercast node group.toml --me a --status
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import logging
import signal
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec

from ordercast.cli.open_files import require_open_files
from ordercast.cli.pipes import lines, sendable, write
from ordercast.cli.supervisor import Supervisor
from ordercast.errors import OrdercastError, UsageError
from ordercast.readable import readable
from ordercast.runtime.config import Config, load
from ordercast.runtime.discovery import Presence
from ordercast.runtime.group import Delivery, Group
from ordercast.runtime.join import join
from ordercast.runtime.logs import JsonFormatter, about
from ordercast.runtime.watching import Watch

__all__ = ["act", "add_arguments"]

DRAIN_S = 5.0
"""How long whoever reads stdout may take for the rest."""
POLL_S = 0.05
OPEN_FILES = 16
"""What a member has open at least, besides its connections."""
logger = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="the group's TOML file")
    parser.add_argument("--me", metavar="NAME", help="which member of the group this is")
    parser.add_argument(
        "--status", action="store_true",
        help="ask the running member how it is doing; FILE may also be its status socket",
    )  # fmt: skip
    parser.add_argument(
        "--addressed", action="store_true",
        help="a line says first whom it is for: names with commas between them, or *",
    )  # fmt: skip
    parser.add_argument("--stay", action="store_true", help="do not leave at the end of stdin")
    parser.add_argument(
        "--replay-from", type=int, metavar="N",
        help="deliver again from this position on, out of the journal",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print JSON lines")
    parser.add_argument("--log-json", action="store_true", help="log JSON lines to stderr")
    parser.add_argument("-v", "--verbose", action="store_true", help="log who comes and goes")


def act(options: argparse.Namespace) -> int:
    if options.status:
        from ordercast.cli.status import show_status  # draws tables, and a member does not

        return show_status(options.file, me=options.me, as_json=options.json)
    if options.me is None:
        raise OrdercastError("which member is this? Say --me NAME")
    require_open_files(OPEN_FILES)
    config = load(options.file, me=options.me)
    _check_replay(options, config)
    _set_up_logging(options, config)
    with _runner() as runner:
        runner.run(_Member(config, options).run())
    return 0


def _check_replay(options: argparse.Namespace, config: Config) -> None:
    if options.replay_from is None:
        return
    if options.replay_from < 1:
        raise UsageError(f"--replay-from {options.replay_from}: positions are counted from 1")
    if config.join["journal"] is None:
        raise UsageError(
            f"--replay-from: {options.file} names no journal to replay from: give node.journal"
        )


class _Member:
    def __init__(self, config: Config, options: argparse.Namespace) -> None:
        self._config = config
        self._replay_from: int | None = options.replay_from
        self._stay: bool = options.stay
        self._addressed: bool = options.addressed
        self._line = _json_line if options.json else _text_line
        self._told = ""
        self._writing = False
        self._watches: list[Watch] = []
        self._supervisor = Supervisor()
        self._log_json: bool = options.log_json

    async def run(self) -> None:
        stop = asyncio.Event()
        ends = [signal.SIGTERM, signal.SIGINT]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup has it
            ends.append(signal.SIGHUP)
        for number in ends:
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        async with contextlib.AsyncExitStack() as stack, _tasks() as begin:
            stack.callback(self._supervisor.close)
            await self._open_watches(stack)
            begin(self._supervisor.keep_awake())
            stopping = begin(stop.wait())
            joining = begin(stack.enter_async_context(self._join()))
            await asyncio.wait({stopping, joining}, return_when=asyncio.FIRST_COMPLETED)
            if not joining.done():
                self._supervisor.stopping()
                return
            group = await joining
            for watch in self._watches:
                watch.serve(group)
            self._supervisor.ready(f"joined {group.name}: {group.algorithm}")
            if not self._log_json:  # there `join` says the same
                print(f"joined {group.name}: {group.algorithm}", file=sys.stderr, flush=True)
            printing = begin(self._print(group))
            sending = begin(self._send(group))
            await asyncio.wait({stopping, printing, sending}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                await sending
                if self._stay:
                    await asyncio.wait({stopping, printing}, return_when=asyncio.FIRST_COMPLETED)
            self._supervisor.stopping()
            await group.aclose()
            await asyncio.wait({printing}, timeout=DRAIN_S)
            if printing.done():
                await printing

    def _join(self) -> contextlib.AbstractAsyncContextManager[Group]:
        return join(
            self._config.group,
            **self._config.join,
            replay_from=self._replay_from,
            on_progress=self._progress,
        )

    def _progress(self, presence: Presence) -> None:
        missing = f", waiting for {', '.join(presence.missing)}" if presence.missing else ""
        for watch in self._watches:
            watch.not_yet = f"{self._config.join['me']} has not joined yet: {presence}{missing}"
        if str(presence) == self._told:
            return
        self._told = str(presence)
        self._supervisor.status(self._told)
        if self._log_json:
            facts = about("presence", self._config.join["me"], group=self._config.group)
            logger.info("%s", self._told, extra=facts)
        else:
            print(self._told, file=sys.stderr, flush=True)

    async def _open_watches(self, stack: contextlib.AsyncExitStack) -> None:
        path, journal = self._config.status, self._config.join["journal"]
        chosen = self._config.status_chosen
        await self._open(stack, Watch.on_socket(path) if chosen else Watch.beside(path, journal))
        if self._config.metrics is not None:
            await self._open(stack, Watch.on_port(self._config.metrics))

    async def _open(self, stack: contextlib.AsyncExitStack, watch: Watch) -> None:
        stack.push_async_callback(watch.aclose)
        await watch.open()
        self._watches.append(watch)

    async def _send(self, group: Group) -> None:
        number = 0
        async for line in lines():
            number += 1
            try:
                names, payload = _addressed(line) if self._addressed else (None, line)
                await group.send(sendable(payload), to=names)
            except UsageError as error:  # of this line only; the member has others to serve
                print(f"line {number} was not sent: {error}", file=sys.stderr, flush=True)
        if not self._stay:
            await self._until_delivered(group)
            await self._until_printed(group)

    async def _until_delivered(self, group: Group) -> None:
        """By everyone present, this member included; whoever is away is not waited for."""
        deadline = asyncio.get_running_loop().time() + self._config.timeout_s
        while True:
            status = group.status()
            late = [p.name for p in status.peers if p.connected and p.undelivered_bundles]
            if status.undelivered_bundles:
                late.append(status.me)
            if not late and not status.waiting:
                return
            if asyncio.get_running_loop().time() > deadline:
                held = "".join(f"; {hold}" for hold in status.why_held[:1])
                raise OrdercastError(
                    f"not all of what was sent has been delivered by {', '.join(late)} after "
                    f"{self._config.timeout_s:g} s{held}"
                )
            await asyncio.sleep(POLL_S)

    async def _until_printed(self, group: Group) -> None:
        """What is here by now: whoever reads it, a replay too, takes the time that it takes."""
        here = group.status().delivered
        while True:
            if group.status().taken >= here and not self._writing:
                return
            await asyncio.sleep(POLL_S)

    async def _print(self, group: Group) -> None:
        """Whoever reads slowly slows the senders down, and not our heartbeats."""
        async for batch in group.batches():
            self._writing = True
            await write("".join(map(self._line, batch)).encode())
            self._writing = False


@contextlib.asynccontextmanager
async def _tasks() -> AsyncIterator[Callable[[Any], asyncio.Task[Any]]]:
    """Tasks that end with the block, if they have not ended before."""
    begun: list[asyncio.Task[Any]] = []

    def begin(coroutine: Any) -> asyncio.Task[Any]:
        begun.append(asyncio.create_task(coroutine))
        return begun[-1]

    try:
        yield begin
    finally:
        for task in begun:
            task.cancel()
        await asyncio.gather(*begun, return_exceptions=True)


def _addressed(line: bytes) -> tuple[list[str] | None, bytes]:
    """Whom a line is for, everyone if None, and what it says."""
    names, space, payload = line.partition(b" ")
    if not space:
        raise UsageError("it should say whom it is for, and then a space")
    return None if names == b"*" else names.decode(errors="replace").split(","), payload


def _text_line(delivery: Delivery) -> str:
    """What cannot be shown is escaped: a message may come from anyone and hold anything."""
    return f"{delivery.id} {readable(delivery.payload.decode('utf-8', 'backslashreplace'))}\n"


def _json_line(delivery: Delivery) -> str:
    line: dict[str, Any] = {
        "id": delivery.id,
        "sender": delivery.sender,
        "number": delivery.number,
        "position": delivery.position,
        "time_us": delivery.time_us,
    }
    try:
        line["text"] = delivery.payload.decode()
    except UnicodeDecodeError:
        line["base64"] = base64.b64encode(delivery.payload).decode()
    return msgspec.json.encode(line).decode() + "\n"


def _set_up_logging(options: argparse.Namespace, config: Config) -> None:
    handler = logging.StreamHandler()
    if options.log_json:
        handler.setFormatter(JsonFormatter(group=config.group, member=options.me))
    level = logging.INFO if options.verbose or options.log_json else logging.WARNING
    logging.basicConfig(level=level, handlers=[handler], force=True)


def _runner() -> asyncio.Runner:
    try:
        import uvloop
    except ImportError:
        return asyncio.Runner()
    return asyncio.Runner(loop_factory=uvloop.new_event_loop)
