"""Reasons survive the way through a manifest, and nonsense in their place does no harm."""

from __future__ import annotations

from ordercast.protocols.messages import Held, MessageId
from ordercast.trace.manifest import Manifest
from ordercast.trace.waits import read_waits, write_waits


def test_reasons_survive_the_manifest() -> None:
    held = [(1, Held(MessageId(0, 2), (MessageId(0, 1),))), (2, Held(MessageId(1, 1), (), (0,)))]
    written = Manifest("r", ("a", "b", "c"), extra={"held": write_waits(held)})
    manifest = Manifest.from_json(written.to_json(), where="here")
    reasons = [wait.reason(manifest.processes) for wait in read_waits(manifest, "held")]
    assert reasons == ["waiting for 0:1", "waiting for word from a"]


def test_a_foreign_meaning_of_the_key_is_let_be() -> None:
    assert read_waits(Manifest("r", (), extra={"held": "yes, 3 of them"}), "held") == []
    assert read_waits(Manifest("r", ()), "held") == []
