"""One member of a group, as a TOML file describes it. All members may share the file.

    [group]
    name = "orders"
    order = "causal"                # default
    reliability = "uniform"         # default: the strongest that goes with the order
    # peers = "registry:/mnt/shared/orders?size=3"    # instead of [members]

    [members]
    a = "10.0.0.1:7001"
    b = "10.0.0.2:7001"

    [node]                          # everything here may be left out
    journal = "journals/{me}"       # {me} is the member's name; paths start where the file is
    keys = "keys"

    [settings]                      # see `ordercast.Settings`
    window_bytes = 8_388_608

Whatever is wrong is one sentence with the file and the key.
"""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct

from ordercast.errors import UsageError
from ordercast.protocols import catalog
from ordercast.runtime.discovery import Address, Answer, from_toml, parse_text
from ordercast.runtime.discovery.address import PORT_MAX
from ordercast.runtime.keys import check_name
from ordercast.runtime.settings import Settings
from ordercast.runtime.toml_file import found, read_toml
from ordercast.spelling import did_you_mean

__all__ = ["Config", "load"]


class _GroupTable(Struct, frozen=True):
    name: str
    order: str = "causal"
    reliability: str | None = None
    peers: str | None = None


class _NodeTable(Struct, frozen=True):
    listen: str | None = None
    keys: str | None = None
    insecure: bool = False
    journal: str | None = None
    sync: Literal["write", "disk"] = "write"
    trace: str | None = None
    timeout_s: float = 60.0
    status: str | None = None
    metrics: str | int | None = None


class _File(Struct, frozen=True):
    group: _GroupTable
    members: dict[str, Any] | None = None
    node: _NodeTable = _NodeTable()
    settings: Settings | None = None


class Config(Struct, frozen=True):
    """What `ordercast.join` is told, and where the member can be watched."""

    group: str
    join: dict[str, Any]
    status: Path
    metrics: Address | None
    timeout_s: float
    status_chosen: bool = True
    """Whether the file says where the status is served."""


def load(path: Path, *, me: str) -> Config:
    file = _read(path)
    node = file.node
    try:
        check_name(file.group.name, "group")
    except UsageError as error:
        raise UsageError(f"{path}, group.name: {error}") from None
    _check_listen(path, node.listen)
    try:
        catalog.choose(file.group.order, file.group.reliability)
    except UsageError as error:
        raise UsageError(f"{path}, [group]: {error}") from None
    peers = _peers(path, file, me)
    keys, journal, trace, status = (
        _place(path, key, getattr(node, key), me) for key in ("keys", "journal", "trace", "status")
    )
    if node.insecure and node.keys is not None:
        raise UsageError(
            f"{path}, node.insecure: keys are for TLS, and this is for going without: leave one of "
            "them out"
        )
    if node.sync == "disk" and node.journal is None:
        raise UsageError(
            f"{path}, node.sync: without a journal nothing is kept on disk: give node.journal too"
        )
    if not node.timeout_s > 0:
        raise UsageError(f"{path}, node.timeout_s: {node.timeout_s:g} s: choose more than 0")
    return Config(
        file.group.name,
        {
            "me": me,
            "peers": peers,
            "order": file.group.order,
            "reliability": file.group.reliability,
            "listen": node.listen,
            "keys": keys,
            "insecure": node.insecure,
            "journal": journal,
            "sync": node.sync,
            "trace": trace,
            "timeout_s": node.timeout_s,
            "settings": file.settings,
        },
        status or _socket(file.group.name, me, journal),
        _metrics(path, node.metrics),
        node.timeout_s,
        status_chosen=node.status is not None,
    )


def _read(path: Path) -> _File:
    document = read_toml(path)
    _check_keys(path, document)
    try:
        return msgspec.convert(document, _File)
    except msgspec.ValidationError as error:
        raise UsageError(_sentence(path, str(error), document)) from None
    except UsageError as error:
        raise UsageError(f"{path}, [settings]: {error}") from None


_TABLES: dict[str, type[Struct]] = {
    "group": _GroupTable,
    "node": _NodeTable,
    "settings": Settings,
}


def _check_keys(path: Path, document: dict[str, Any]) -> None:
    """A key that means nothing is a mistake, most likely of the pen."""
    for name, table in document.items():
        if name not in _File.__struct_fields__:
            known = ", ".join(f"[{table}]" for table in _File.__struct_fields__)
            near = did_you_mean(name, _File.__struct_fields__)
            raise UsageError(f"{path}, {name}: there is no such table{near}; there are {known}")
        fields = _TABLES[name].__struct_fields__ if name in _TABLES else ()
        if (
            fields
            and isinstance(table, dict)
            and (unknown := [k for k in table if k not in fields])
        ):
            near = did_you_mean(unknown[0], fields)
            raise UsageError(
                f"{path}, {name}.{unknown[0]}: there is no such key{near}; [{name}] may have "
                f"{', '.join(fields)}"
            )


def _sentence(path: Path, error: str, document: dict[str, Any]) -> str:
    """msgspec says what is wrong and where: `Expected `int`, got `str` - at `$.node.sync``."""
    told = re.fullmatch(r"(.*?)(?: - at `\$\.?(.*?)`)?", error, re.DOTALL)
    assert told is not None
    what, key = told[1], told[2] or ""
    if lacking := re.fullmatch(r"Object missing required field `(.+)`", what):
        return f"{path}, {'.'.join(filter(None, [key, lacking[1]]))}: this is missing"
    table, _, field = key.partition(".")
    value = document[table][field] if field else document[table]
    if what.startswith("Invalid enum value"):
        return f"{path}, {key}: there is no {value!r}; choose {_wanted(table, field)}"
    return f"{path}, {key}: write {_wanted(table, field)}, not {found(value)}"


_WANTED = {str: "text in quotes", int: "a whole number", float: "a number", bool: "true or false"}


def _wanted(table: str, field: str) -> str:
    """All that such a key may say."""
    if not field:
        return f"a table [{table}]"
    hint = get_type_hints(_TABLES[table])[field]
    kinds = get_args(hint) or (hint,)
    if get_origin(hint) is Literal:
        return " or ".join(map(repr, kinds))
    return " or ".join(words for kind, words in _WANTED.items() if kind in kinds)


def _peers(path: Path, file: _File, me: str) -> Path | str:
    text = file.group.peers
    if (text is None) == (file.members is None):
        both = "both [members] and group.peers say" if text is not None else "nothing says"
        raise UsageError(
            f"{path}: {both} who the members are: write a table [members], or group.peers"
        )
    if text is None:
        return _listed(path, me)
    try:
        if text.endswith(".toml"):
            return _listed(path.resolve().parent / text, me)
        parse_text(text, ask=_nobody)
    except UsageError as error:
        raise UsageError(f"{path}, group.peers: {error}") from None
    if text.startswith("registry:"):
        return f"registry:{path.resolve().parent / text.removeprefix('registry:')}"
    return text


def _listed(path: Path, me: str) -> Path:
    """The file itself, once it names this member."""
    listed = from_toml(path)
    if me not in listed.known:
        raise UsageError(f"{path}, [members]: {me!r} is not one of {', '.join(listed.known)}")
    return path


async def _nobody(address: Address) -> Answer:
    raise AssertionError("who the others are is only looked up by a member")


def _check_listen(path: Path, text: str | None) -> None:
    """A host alone will do: then any port is taken."""
    try:
        if text is not None:
            Address.parse(text if ":" in text or text.isdecimal() else f"{text}:1")
    except UsageError:
        raise UsageError(
            f"{path}, node.listen: {text!r} is no address: write 'host' or 'host:port'"
        ) from None


def _place(path: Path, key: str, text: str | None, me: str) -> Path | None:
    if text is None:
        return None
    if not text or "\0" in text:
        raise UsageError(f"{path}, node.{key}: {text!r} is no path: name one, or leave the key out")
    return path.resolve().parent / text.replace("{me}", me)


def _metrics(path: Path, where: str | int | None) -> Address | None:
    """Whoever wants to be seen from elsewhere says so by naming a host."""
    if where is None:
        return None
    text = str(where)
    alone = isinstance(where, int) or text.isdecimal()
    try:
        return Address.parse(f"127.0.0.1:{text}" if alone else text)
    except UsageError as error:
        why = f"{text} is no port: choose from 1 to {PORT_MAX}" if alone else error
        raise UsageError(f"{path}, node.metrics: {why}") from None


def _socket(group: str, me: str, journal: Path | None) -> Path:
    """Beside the journal; without one, where sockets of this user belong."""
    if journal is not None:
        return journal.with_name(f"{journal.name}.status")
    name = f"{group}-{me}.status"
    if (runtime := os.environ.get("XDG_RUNTIME_DIR")) and Path(runtime).is_dir():
        return Path(runtime) / f"ordercast-{name}"
    directory = Path(tempfile.gettempdir()) / f"ordercast-{os.getuid()}"
    directory.mkdir(mode=0o700, exist_ok=True)
    if directory.lstat().st_uid != os.getuid():
        raise UsageError(f"{directory} belongs to someone else: choose a path with node.status")
    return directory / name
