"""A directory that all members can write to: on one machine, or on a mount that hosts share.

Each member keeps a file `NAME.json` there and renews it while it lives. How old a file is, is told
by the file system's own clock, against a file that has just been written: the hosts' clocks need
not agree. What a dead member has left counts no more after a while, and a member that comes back
overwrites its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import stat
import threading
from glob import escape
from pathlib import Path

import msgspec

from ordercast.errors import UsageError
from ordercast.runtime.discovery.address import Address, words
from ordercast.runtime.discovery.finder import (
    DiscoveryError,
    Finder,
    check_reachable,
    check_size,
)
from ordercast.runtime.keys import check_name

__all__ = ["Registry"]

RENEW_S = 2.0
STALE_S = 15.0
FILE_BYTES_MAX = 4096
UNREADABLE = (ValueError, RecursionError, UsageError)
"""What decoding raises, where a list is in a list is in a list, and what we say of a wrong one."""

logger = logging.getLogger(__name__)


class Entry(msgspec.Struct, frozen=True):
    """What stands in a file."""

    name: str
    address: str


class Registry(Finder):
    def __init__(
        self,
        directory: Path | str,
        size: int,
        *,
        renew_s: float = RENEW_S,
        stale_s: float = STALE_S,
    ) -> None:
        self.size = check_size(size)
        self.known = {}
        self._directory = Path(directory)
        self._renew_s = renew_s
        self._stale_s = stale_s
        self._lock = threading.Lock()
        self._mine: Entry | None = None
        self._renewing: asyncio.Task[None] | None = None
        self._warned: set[str] = set()

    async def announce(self, me: str, address: Address) -> None:
        check_reachable(address)
        await self.withdraw()
        entry = Entry(check_name(me), str(address))
        try:
            await asyncio.to_thread(self._announce, entry)
        except OSError as error:
            file = isinstance(error, FileExistsError | NotADirectoryError)
            raise DiscoveryError(
                f"{me!r} cannot be announced in {self._directory}: "
                f"{'it is a file' if file else words(error)}: name a directory that all members "
                "can write to"
            ) from None
        self.known = {me: address}
        self._renewing = asyncio.create_task(self._renew())

    async def look(self) -> dict[str, Address]:
        try:
            found = await asyncio.to_thread(self._read_all)
        except OSError as error:  # a mount that is away for a while
            self.trouble = f"{self._directory} cannot be read: {words(error)}"
            return dict(self.known)
        if len(found) > self.size:
            raise DiscoveryError(
                f"{self._directory} has {len(found)} members and the group is one of {self.size}: "
                f"{', '.join(sorted(found))}"
            )
        self.known = found
        return dict(found)

    async def withdraw(self) -> None:
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.wait([self._renewing])
            self._renewing = None
        await asyncio.to_thread(self._remove)

    def learn(self, name: str, address: Address) -> None:
        """The directory knows better."""

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self._renew_s)
            try:
                await asyncio.to_thread(self._write_again)
            except DiscoveryError as error:
                logger.error("%s", error)
                return
            except OSError as error:  # a mount that is away for a while
                logger.warning(
                    "the registry %s cannot be renewed: %s", self._directory, words(error)
                )

    # What follows runs in threads, since a shared mount may be slow. A thread cannot be stopped:
    # one that is late finds that `_mine` is withdrawn, and does nothing.

    def _write_again(self) -> float | None:
        """Renew the own file, if it still is; says by the file system's clock when that was."""
        with self._lock:
            if self._mine is None:
                return None
            path = self._path(self._mine)
            with contextlib.suppress(FileNotFoundError, *UNREADABLE):
                self._check_mine(_read(path), self._mine)
            self._write(self._mine)
            return path.stat().st_mtime

    def _announce(self, entry: Entry) -> None:
        """Whatever file of that name there is: it is that of a member which has come back, and may
        have been killed while it wrote."""
        with self._lock:
            for half in self._directory.glob(f".{escape(entry.name)}.json.*"):
                half.unlink(missing_ok=True)
            self._write(entry)
            self._mine = entry

    def _remove(self) -> None:
        with self._lock:
            mine, self._mine = self._mine, None
            if mine is not None:
                with contextlib.suppress(OSError, DiscoveryError, *UNREADABLE):
                    self._check_mine(_read(self._path(mine)), mine)
                    self._path(mine).unlink()

    def _path(self, entry: Entry) -> Path:
        return self._directory / f"{entry.name}.json"

    def _write(self, entry: Entry) -> None:
        """At once or not at all: a reader never meets half a file of ours."""
        path = self._path(entry)
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        self._directory.mkdir(parents=True, exist_ok=True)
        try:
            temporary.write_bytes(msgspec.json.encode(entry))
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)

    def _check_mine(self, entry: Entry, mine: Entry) -> None:
        if entry != mine:
            raise DiscoveryError(
                f"another process calls itself {entry.name!r} in {self._directory}, at "
                f"{entry.address}: no two members can have one name"
            )

    def _read_all(self) -> dict[str, Address]:
        own_time = self._write_again()
        assert own_time is not None, "announce yourself before you look"
        found = {}
        stale = []
        for path in sorted(self._directory.glob("[!.]*.json")):
            try:
                entry = _read(path)
                age_s = own_time - path.stat().st_mtime
            except FileNotFoundError:  # withdrawn this moment
                continue
            except (OSError, *UNREADABLE) as error:
                self._warn(path, error)
                continue
            if age_s > self._stale_s:
                stale.append(f"{entry.name!r} was last there {age_s:.0f} s ago")
            else:
                found[entry.name] = Address.parse(entry.address)
        self.trouble = "; ".join(stale)
        return found

    def _warn(self, path: Path, error: Exception) -> None:
        if path.name not in self._warned:
            self._warned.add(path.name)
            logger.warning("%s is not of a member and is left out: %s", path, error)


def _read(path: Path) -> Entry:
    if not stat.S_ISREG(path.stat().st_mode):
        raise UsageError("it is not a file")
    with path.open("rb") as file:
        entry = msgspec.json.decode(file.read(FILE_BYTES_MAX), type=Entry)
    if check_name(entry.name) != path.stem:
        raise UsageError(f"it says that it is of {entry.name!r}")
    Address.parse(entry.address)
    return entry
