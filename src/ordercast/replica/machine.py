"""The program's state, and how far it has come: what is delivered is carried out here, once."""

from __future__ import annotations

import logging
from typing import Any, Protocol

from ordercast.errors import PeerError, UsageError
from ordercast.replica.checkpoint import Applied, Checkpoint
from ordercast.replica.commands import Commands, Met, decode
from ordercast.replica.pending import Pending
from ordercast.replica.rolls import EXPELLED_MAX, Change
from ordercast.runtime.frames import Roll

__all__ = ["Machine", "Workshop", "saved"]

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


def saved(machine: Machine) -> bytes | bytearray | memoryview:
    """Whatever save() raises, and a `TypeError` if it gives anything but bytes."""
    state: object = machine.save()
    if not isinstance(state, bytes | bytearray | memoryview):
        raise TypeError(f"save() gave {type(state).__name__}, and not bytes")
    return state


class Workshop:
    """Where a machine stands."""

    def __init__(self, machine: Machine, pending: Pending, me: str) -> None:
        self.machine = machine
        self.position = 0
        """Of the last message of this generation that was taken."""
        self.busy = False
        """Whether anything was carried out here."""
        self.steps = 0
        """As long as this stays the same, so does the state."""
        self._applied: Applied = {}
        self._at_work = False
        """Whether the machine is in a generation."""
        self._save_failed = False
        self._pending = pending
        self._me = me

    def move(self, roll: Roll) -> None:
        """The machine stays as it is, and another generation begins."""
        self.position, self._at_work = 0, True
        gone = [name for name in self._applied if name not in roll.seats]
        for name in gone[:-EXPELLED_MAX]:  # whoever was left behind may yet come back with some
            del self._applied[name]

    def try_out(self, checkpoint: Checkpoint) -> bool:
        """Raises a `UsageError` if the machine cannot be in this state. Whether it is afterwards:
        one that is at work is in its own."""
        own = None
        if self._at_work and (own := self.checkpoint(checkpoint.generation)) is None:
            return False  # it cannot be had back
        try:
            self.machine.load(checkpoint.state)
        except Exception as error:
            raise UsageError(
                f"{self._me} cannot take the state that the others are in, so it has asked for no "
                f"seat among them: load() raised {type(error).__name__}: {error}"
            ) from error
        finally:
            if own is not None:
                self.machine.load(own.state)
        return own is None

    def load(self, checkpoint: Checkpoint, *, tried: bool = False) -> None:
        """Unless the machine has tried it, and is in this state."""
        self.steps += 1
        if not tried:
            self.machine.load(checkpoint.state)
        self._applied, self.position = dict(checkpoint.applied), checkpoint.position

    def checkpoint(self, generation: int) -> Checkpoint | None:
        """None if the program cannot save its state, which the log tells once: it may yet go on."""
        try:
            state = saved(self.machine)
        except Exception:
            if not self._save_failed:  # whoever needs it asks again and again
                logger.exception("%s: the state cannot be saved", self._me)
            self._save_failed = True
            return None
        self._save_failed = False
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
        self.steps += 1
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
