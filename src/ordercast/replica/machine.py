"""The program's state, and how far it has come: what is delivered is carried out here, once."""

from __future__ import annotations

import logging
from typing import Any, Protocol

from ordercast.errors import PeerError
from ordercast.replica.checkpoint import Applied, Checkpoint
from ordercast.replica.commands import Commands, Met, decode
from ordercast.replica.pending import Pending
from ordercast.replica.rolls import EXPELLED_MAX, Change
from ordercast.runtime.frames import Roll

__all__ = ["Machine", "Workshop"]

logger = logging.getLogger(__name__)


class Machine(Protocol):
    """A program's state. The same commands in the same order must lead to the same state: what
    `apply` does may depend on nothing else, neither a clock nor chance."""

    def apply(self, command: bytes, sender: str) -> Any:
        """Carry out a command. What it returns or raises is for whoever gave the command; it
        raises before it changes anything, or not at all."""

    def save(self) -> bytes:
        """The whole state, for `load` on another machine or in another life."""

    def load(self, state: bytes) -> None:
        """Be in this state, whatever was before."""


class Workshop:
    """Where a machine stands."""

    def __init__(self, machine: Machine, pending: Pending, me: str) -> None:
        self.machine = machine
        self.position = 0
        """Of the last message of this generation that was taken."""
        self.busy = False
        """Whether anything was carried out here."""
        self._applied: Applied = {}
        self._pending = pending
        self._me = me

    def move(self, roll: Roll) -> None:
        """The machine stays as it is, and another generation begins."""
        self.position = 0
        gone = [name for name in self._applied if name not in roll.seats]
        for name in gone[:-EXPELLED_MAX]:  # whoever was left behind may yet come back with some
            del self._applied[name]

    def load(self, checkpoint: Checkpoint) -> None:
        self.machine.load(checkpoint.state)
        self._applied, self.position = dict(checkpoint.applied), checkpoint.position

    def checkpoint(self, generation: int) -> Checkpoint | None:
        """None if the program cannot save its state, which the log tells: it may yet go on."""
        try:
            state = self.machine.save()
            if not isinstance(state, bytes | bytearray | memoryview):
                raise TypeError(f"save() gave {type(state).__name__}, and not bytes")
        except Exception:
            logger.exception("%s: the state cannot be saved", self._me)
            return None
        return Checkpoint(generation, self.position, dict(self._applied), bytes(state))

    def begin(self) -> None:
        """Commands of ours that have not been carried out by now are sent in this generation."""
        self._pending.start_anew(self._applied.get(self._me))

    def take(self, sender: str, payload: bytes, position: int) -> Change | Met | None:
        """What was delivered at this place; what is not a command is for the caller."""
        if position <= self.position:
            return None
        self.position = position
        try:
            message = decode(payload)
        except PeerError as error:  # everyone gets the same, and does nothing with it
            logger.warning("%s: what %s sent is left out: %s", self._me, sender, error)
            return None
        if not isinstance(message, Commands):
            return message
        self.busy = True
        last = message.first + len(message.bodies) - 1
        self._applied[sender] = message.session, last
        self._carry_out(message, sender)
        return None

    def _carry_out(self, commands: Commands, sender: str) -> None:
        own = commands.session == self._pending.session
        apply, settle = self.machine.apply, self._pending.settle
        for body in commands.bodies:
            result, refused = None, None
            if body is not None:  # then somebody only wants to know when it is there
                try:
                    result = apply(body, sender)
                except Exception as error:
                    logger.debug("%s: a command of %s is refused", self._me, sender, exc_info=True)
                    refused = _settable(error)
            if own:
                settle(result, refused)


def _settable(error: Exception) -> Exception:
    """A future takes any exception but this one."""
    if not isinstance(error, StopIteration):
        return error
    wrapped = RuntimeError("apply() raised StopIteration")
    wrapped.__cause__ = error
    return wrapped
