"""What a user may write for `peers=`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeAlias

from ordercast.errors import UsageError
from ordercast.runtime.discovery.address import Address
from ordercast.runtime.discovery.asking import Ask, Dns, Via
from ordercast.runtime.discovery.finder import Finder
from ordercast.runtime.discovery.registry import Registry
from ordercast.runtime.discovery.static import StaticList, from_toml

__all__ = ["Peers", "parse_peers", "parse_text"]

Peers: TypeAlias = Finder | Mapping[str, str | Address] | Iterable[str] | str | Path

TEXTS = (
    '"group.toml", "registry:DIR?size=3", "dns:NAME:PORT?size=3" or '
    '"via:HOST:PORT,HOST:PORT?size=3"'
)
FORMS = '{"a": "10.0.0.1:7001", ...}, ["a=10.0.0.1:7001", ...], ' + TEXTS

_WITH_SIZE = re.compile(r"(registry|dns|via):(.+)\?size=([0-9]{1,6})")


def parse_peers(value: Peers, *, ask: Ask) -> Finder:
    """`ask` is how the host asks a member over the wire; DNS names and `via` need it."""
    if isinstance(value, Finder):
        return value
    if isinstance(value, Path):
        return from_toml(value)
    if isinstance(value, str):
        return parse_text(value, ask=ask, forms=FORMS)
    if isinstance(value, Mapping):
        return StaticList({name: _address(where) for name, where in value.items()})
    if isinstance(value, Iterable):
        return _of_lines(list(value))
    raise _no_such_form(value)


def parse_text(text: str, *, ask: Ask, forms: str = TEXTS) -> Finder:
    """Likewise, where only text can be written."""
    if text.endswith(".toml"):
        return from_toml(text)
    found = _WITH_SIZE.fullmatch(text)
    if found is None:
        raise _no_such_form(text, forms)
    kind, where, size = found[1], found[2], int(found[3])
    if kind == "registry":
        return Registry(where, size)
    if kind == "dns":
        return Dns(Address.parse(where), size, ask=ask)
    return Via([Address.parse(seed) for seed in where.split(",")], size, ask=ask)


def _of_lines(lines: list[str]) -> StaticList:
    members: dict[str, Address] = {}
    for line in lines:
        name, equals, where = line.partition("=") if isinstance(line, str) else ("", "", "")
        if not equals:
            raise _no_such_form(line)
        if name in members:
            raise UsageError(f"{name!r} is in the list twice")
        members[name] = Address.parse(where)
    return StaticList(members)


def _address(where: object) -> Address:
    if isinstance(where, Address):
        return where
    if isinstance(where, str):
        return Address.parse(where)
    raise UsageError(f"{where!r} is no address: write 'host:port'")


def _no_such_form(value: object, forms: str = FORMS) -> UsageError:
    return UsageError(f"{value!r} does not say who the members are: write {forms}")
