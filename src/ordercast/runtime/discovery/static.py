"""A list of members that is known beforehand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ordercast.errors import UsageError
from ordercast.runtime.discovery.address import Address
from ordercast.runtime.discovery.finder import Finder, check_reachable, check_size
from ordercast.runtime.keys import check_name
from ordercast.runtime.toml_file import dotted, found, read_toml

__all__ = ["StaticList", "from_toml"]


class StaticList(Finder):
    """Everyone, with the address that the others reach it at."""

    def __init__(self, members: Mapping[str, Address]) -> None:
        check_size(len(members))
        self.names = tuple(sorted(check_name(name) for name in members))
        self.size = len(members)
        self.known = {name: check_reachable(address) for name, address in members.items()}
        owners: dict[Address, str] = {}
        for name, address in members.items():
            if owners.setdefault(address, name) != name:
                raise UsageError(f"{owners[address]!r} and {name!r} cannot both be at {address}")

    async def announce(self, me: str, address: Address) -> None:
        """Where one listens may differ from the list, as behind a proxy; who one is may not."""
        if me not in self.known:
            raise UsageError(f"{me!r} is not in the list of members: {', '.join(self.known)}")

    async def look(self) -> dict[str, Address]:
        return dict(self.known)

    async def withdraw(self) -> None:
        """A list stays as it is."""

    def learn(self, name: str, address: Address) -> None:
        """The list knows better."""


def from_toml(path: Path | str) -> StaticList:
    """A table `[members]` with lines such as `a = "10.0.0.1:7001"`; other tables are ignored."""
    table = read_toml(path).get("members")
    if not isinstance(table, dict) or not table:
        raise UsageError(f'{path} has no table [members] with lines such as a = "10.0.0.1:7001"')
    members = {}
    for name, text in table.items():
        try:
            if not isinstance(text, str):
                raise UsageError(_no_text(text))
            members[check_name(name)] = Address.parse(text)
        except UsageError as error:
            raise UsageError(f"{path}, {dotted('members', name)}: {error}") from None
    try:
        return StaticList(members)
    except UsageError as error:
        raise UsageError(f"{path}, [members]: {error}") from None


def _no_text(value: object) -> str:
    dots = "; a name with a dot in it needs quotes as well" if isinstance(value, dict) else ""
    return f'write "host:port" in quotes, not {found(value)}{dots}'
