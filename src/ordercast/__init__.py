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
        OutcomeUnknownError,
        PeerError,
        RemovedError,
        SetupError,
        TraceError,
        UsageError,
    )
    from ordercast.replica.machine import Machine
    from ordercast.replica.replica import Replica
    from ordercast.replica.replicate import replicate
    from ordercast.runtime.discovery import DiscoveryError
    from ordercast.runtime.group import Batch, Delivery, Group, View
    from ordercast.runtime.holds import Hold
    from ordercast.runtime.join import join
    from ordercast.runtime.metrics import metrics as metrics
    from ordercast.runtime.receipts import Receipt, Receipts
    from ordercast.runtime.settings import Settings
    from ordercast.runtime.status import Status
    from ordercast.runtime.telemetry import traced as traced

__version__ = "0.1.0"

__all__ = [
    "Batch",
    "Delivery",
    "DiscoveryError",
    "Group",
    "Hold",
    "JournalError",
    "Machine",
    "OrdercastError",
    "OutcomeUnknownError",
    "PeerError",
    "Receipt",
    "Receipts",
    "RemovedError",
    "Replica",
    "Settings",
    "SetupError",
    "Status",
    "TraceError",
    "UsageError",
    "View",
    "join",
    "replicate",
]

_HOMES = {
    "errors": (
        "JournalError",
        "OrdercastError",
        "OutcomeUnknownError",
        "PeerError",
        "RemovedError",
        "SetupError",
        "TraceError",
        "UsageError",
    ),
    "replica.machine": ("Machine",),
    "replica.replica": ("Replica",),
    "replica.replicate": ("replicate",),
    "runtime.discovery": ("DiscoveryError",),
    "runtime.group": ("Batch", "Delivery", "Group", "View"),
    "runtime.holds": ("Hold",),
    "runtime.join": ("join",),
    "runtime.receipts": ("Receipt", "Receipts"),
    "runtime.settings": ("Settings",),
    "runtime.status": ("Status",),
    # These need extras, so they are not among the names that `import *` takes.
    "runtime.metrics": ("metrics",),
    "runtime.telemetry": ("traced",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Names are fetched when they are used: a command that needs no sockets loads none."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'ordercast' has no attribute {name!r}")
    return getattr(import_module(f"ordercast.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*_HOME_OF, "__version__"])
