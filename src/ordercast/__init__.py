"""Ordered messaging between processes, with proof that the order held.

async with ordercast.join("orders", me="a", peers="group.toml", order="causal") as group:
    receipt = await group.send(b"created 17")
    await receipt.stable()
    async for delivery in group:
        ...
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ordercast.errors import (
        JournalError,
        OrdercastError,
        PeerError,
        SetupError,
        TraceError,
        UsageError,
    )
    from ordercast.runtime.discovery import DiscoveryError
    from ordercast.runtime.group import Batch, Delivery, Group, Receipt, View
    from ordercast.runtime.holds import Hold
    from ordercast.runtime.join import join
    from ordercast.runtime.node import Settings

__version__ = "0.1.0"

__all__ = [
    "Batch",
    "Delivery",
    "DiscoveryError",
    "Group",
    "Hold",
    "JournalError",
    "OrdercastError",
    "PeerError",
    "Receipt",
    "Settings",
    "SetupError",
    "TraceError",
    "UsageError",
    "View",
    "join",
]

_HOMES = {
    "errors": (
        "JournalError",
        "OrdercastError",
        "PeerError",
        "SetupError",
        "TraceError",
        "UsageError",
    ),
    "runtime.discovery": ("DiscoveryError",),
    "runtime.group": ("Batch", "Delivery", "Group", "Receipt", "View"),
    "runtime.holds": ("Hold",),
    "runtime.join": ("join",),
    "runtime.node": ("Settings",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Names are fetched when they are used: a command that needs no sockets loads none."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'ordercast' has no attribute {name!r}")
    return getattr(import_module(f"ordercast.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
