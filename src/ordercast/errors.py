"""One root for every error, and beneath it: whose fault it is.

An `assert` is for our own bugs; everything a user can see derives from `OrdercastError`
and reads as one sentence that says what, where and what to do.
"""

from __future__ import annotations

__all__ = [
    "CheckpointError",
    "JournalError",
    "OrdercastError",
    "OutcomeUnknownError",
    "PeerError",
    "RemovedError",
    "SetupError",
    "TraceError",
    "UnusableError",
    "UsageError",
]


class OrdercastError(Exception):
    """The root of all errors that ordercast raises on purpose."""


class UsageError(OrdercastError):
    """The caller asked for something that cannot be."""


class PeerError(OrdercastError):
    """Another process broke the protocol: drop its link, keep the node."""


class TraceError(OrdercastError):
    """A trace cannot be used: which file, which row, and what was expected there."""


class UnusableError(TraceError):
    """A row or a file of a trace cannot be used; the rest of it perhaps can."""


class JournalError(OrdercastError):
    """A member's journal cannot be read or written: which file, where in it, and what to do."""


class RemovedError(OrdercastError):
    """This replica is not a member of its group any more."""


class OutcomeUnknownError(OrdercastError):
    """A command was carried out, or may have been, and what came of it is not known here."""


class CheckpointError(OrdercastError):
    """A streaming query cannot go on from its checkpoint: what differs, and what to do."""


class SetupError(OrdercastError):
    """This machine lacks something that the job needs, such as Java."""
