"""Who the members were when this one was last there, in a file beside its journal.

A member that comes back waits for nobody: but where the others have to be found, those that are
down are nowhere. Whether these are the members that the journal is of, the charter in it tells.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

import msgspec

from ordercast.errors import UsageError
from ordercast.runtime.discovery.address import Address

__all__ = ["recall", "remember"]

FILE = "members.json"

logger = logging.getLogger(__name__)


def recall(journal: Path, size: int) -> dict[str, Address]:
    """Nobody, if there is no such file, or it is damaged or of a group of another size: then
    everyone has to be found, as at first."""
    try:
        found = msgspec.json.decode((journal / FILE).read_bytes(), type=dict[str, str])
        members = {name: Address.parse(where) for name, where in found.items()}
    except (OSError, ValueError, UsageError):  # all that decoding raises is a ValueError
        return {}
    return members if len(members) == size else {}


def remember(journal: Path, addresses: Mapping[str, Address]) -> None:
    """At once or not at all. The member can do without."""
    fresh = journal / f"{FILE}.new"
    try:
        texts = {name: str(address) for name, address in sorted(addresses.items())}
        fresh.write_bytes(msgspec.json.encode(texts))
        fresh.replace(journal / FILE)
    except OSError as error:
        logger.warning("who the members are cannot be kept in %s: %s", journal, error.strerror)
