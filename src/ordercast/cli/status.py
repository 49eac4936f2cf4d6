"""`ordercast node --status`: what a running member says of itself, as a table."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ordercast.cli.words import counted
from ordercast.errors import UsageError
from ordercast.readable import readable
from ordercast.runtime.ask_status import ask
from ordercast.runtime.config import load
from ordercast.runtime.status import PeerStatus, Status

__all__ = ["show_status"]


def show_status(file: Path, *, me: str | None, as_json: bool) -> int:
    """`file` is the member's status socket, or its TOML file, and then `me` says which member."""
    status = ask(_socket(file, me))
    if as_json:
        print(msgspec.json.encode(status).decode())
        return 0
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 140)
    console.print(_facts(status))
    if status.peers:
        console.print(_peers(status))
    return 0


def _socket(file: Path, me: str | None) -> Path:
    if file.exists() and stat.S_ISREG(file.stat().st_mode):
        if me is None:
            raise UsageError(f"{file} describes all members: say which one with --me NAME")
        return load(file, me=me).status
    if not file.exists() and (me is not None or file.suffix == ".toml"):
        raise UsageError(
            f"there is no file {file}: name the group's TOML file, with --me NAME, or the status "
            "socket of a member that is running"
        )
    return file


def _facts(status: Status) -> Table:
    title = f"{status.me} in {status.group}: {status.algorithm}, process {status.pid}"
    table = Table(
        title=Text(readable(title), style="italic"),
        title_justify="left",
        show_header=False,
        box=None,
    )
    table.add_column(style="bold")
    table.add_column()
    for name, text in _rows(status):
        table.add_row(name, Text(readable(text)))
    return table


def _rows(status: Status) -> list[tuple[str, str]]:
    present = f"{len(status.present)} of {len(status.members)}: {', '.join(status.present)}"
    absent = [
        f"; {word}: {', '.join(names)}"
        for word, names in (("suspected", status.suspected), ("dead", status.dead))
        if names
    ]
    rows = [
        ("present", present + "".join(absent)),
        *(("", peer.trouble) for peer in status.peers if peer.trouble is not None),
        *([("leader", status.leader)] if status.leader is not None else []),
        ("sent", f"{counted(status.sent, 'message')}, {status.waiting} about to leave"),
        (
            "delivered",
            f"{counted(status.delivered, 'message')}, the last at position {status.delivered}",
        ),
        (
            "taken",
            f"up to position {status.taken}; {counted(status.queued, 'message')} wait to be taken",
        ),
        ("window", _window(status)),
        ("held", counted(status.held, "bundle") if status.held else "nothing"),
        *(("", str(hold)) for hold in status.why_held),
    ]
    if failed := status.failed_handshakes:
        reasons = (f"{count} {reason.replace('_', ' ')}" for reason, count in failed.items())
        rows.append(("handshakes", f"failed: {', '.join(reasons)}"))
    if (journal := status.journal) is not None:
        place = f"segment {journal.segment} at {_size(journal.segment_bytes)}"
        rows.append(("journal", f"{journal.directory}, {place}, {journal.commits} commits"))
    return rows


def _window(status: Status) -> str:
    used = f"{_size(status.window_used_bytes)} of {_size(status.window_bytes)} in use"
    slow = [p.name for p in status.peers if p.window_used_bytes > status.window_bytes]
    if not slow and status.window_used_bytes > status.window_bytes:
        slow = [f"{status.me} itself"]
    return f"{used}: sending waits for {', '.join(slow)}" if slow else used


def _peers(status: Status) -> Table:
    table = Table()
    table.add_column("member")
    table.add_column("state", no_wrap=True)
    for name in ("to acknowledge", "to deliver", "to take", "sent", "received", "connections"):
        table.add_column(name, justify="right")
    for peer in status.peers:
        table.add_row(
            Text(readable(peer.name)),
            _state(peer),
            f"{peer.unacknowledged_packets} ({_size(peer.unacknowledged_bytes)})",
            f"{peer.undelivered_bundles}",
            _size(peer.window_used_bytes),
            f"{peer.packets_sent}",
            f"{peer.packets_received}",
            f"{peer.connections}",
        )
    return table


def _state(peer: PeerStatus) -> Text:
    if peer.dead:
        return Text("dead", style="bold red")
    if peer.refused is not None:
        return Text("refuses us", style="bold red")
    if not peer.connected:
        return Text("suspected" if peer.suspected else "away", style="yellow")
    return Text("suspected", style="yellow") if peer.suspected else Text("connected", style="green")


def _size(count: int) -> str:
    for unit, size in (("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"
