"""A member's state as bytes, and back: nothing but what a member consists of is ever read."""

from __future__ import annotations

import io
import pickle
import sys
from collections import deque
from collections.abc import Iterator
from typing import Any

from ordercast.errors import JournalError
from ordercast.protocols.catalog import DISSEMINATIONS, ORDERINGS
from ordercast.protocols.dice import Dice
from ordercast.protocols.messages import Message, MessageId
from ordercast.protocols.parking import ParkingLot
from ordercast.protocols.received import Received
from ordercast.protocols.retained import Retained
from ordercast.protocols.stack import Stack
from ordercast.runtime.bundle import packed_bundle
from ordercast.runtime.link import Link
from ordercast.runtime.standing import Standing

__all__ = ["dump", "load"]

_SHARED: tuple[Any, ...] = (
    *(Stack, Message, MessageId, Dice, ParkingLot, Received, Retained),
    *(Link, Standing, packed_bundle, deque),
)


def _of_algorithms() -> Iterator[type]:
    """The classes in their files: each algorithm may keep any of its own packets for later."""
    layers: list[type] = [entry.layer for entry in ORDERINGS.values()]
    layers += [entry.layer for entry in DISSEMINATIONS.values()]
    for layer in layers:
        file = layer.__module__
        for value in vars(sys.modules[file]).values():
            if isinstance(value, type) and value.__module__ == file:
                yield value


_PARTS = {(part.__module__, part.__qualname__): part for part in (*_SHARED, *_of_algorithms())}
"""All that a snapshot may name."""


def dump(state: dict[str, Any]) -> bytes:
    return pickle.dumps(state, protocol=5)


class _Reader(pickle.Unpickler):
    """Reads what a core consists of and nothing else: a journal is a file, and files are copied.

    Whatever a snapshot names is looked up in the table, never in modules: from any of those, a
    name with dots leads to all that it imports.
    """

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _PARTS:
            return _PARTS[module, name]
        raise JournalError(
            f"a snapshot names {module}.{name}, which is no part of a member's state"
        )


def load(snapshot: bytes) -> dict[str, Any]:
    try:
        state: dict[str, Any] = _Reader(io.BytesIO(snapshot)).load()
    except JournalError:
        raise
    except Exception as error:  # bytes that are no state may end in any of them
        raise JournalError(f"a snapshot is none: {error}") from error
    return state
