"""Spans for OpenTelemetry, around a group: off unless a program wraps its group in `traced`.

    orders = ordercast.traced(group, propagate=True)
    await orders.send(b"created 17")                   # a producer span per message
    async for delivery in orders:
        with orders.processing(delivery):              # a consumer span, linked to the producer's
            ...

With `propagate`, the sender's context travels in front of the payload: so all members of the group
have to wrap theirs alike. Without it nothing is added, and spans of both sides are found by the
same `messaging.message.id`. A group that is not wrapped pays nothing.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from ordercast.errors import SetupError, UsageError
from ordercast.runtime.group import Group
from ordercast.runtime.payloads import checked_payload
from ordercast.runtime.receipts import Receipt
from ordercast.runtime.taking import Delivery

try:
    from opentelemetry import propagate as propagation
    from opentelemetry import trace
    from opentelemetry.context import Context
    from opentelemetry.trace import Link, Span, SpanKind
except ImportError as error:
    raise SetupError(
        "spans need the package opentelemetry-api: pip install 'ordercast[otel]'"
    ) from error

if TYPE_CHECKING:
    from opentelemetry.util.types import AttributeValue

__all__ = ["Traced", "TracedDelivery", "traced"]

MAGIC = b"\x00oc1"
"""A payload that begins so has a context in front; no text does."""
LENGTH = 2

_decode = msgspec.msgpack.Decoder(dict[str, str]).decode


class TracedDelivery(Delivery, frozen=True):
    """A delivery, and what came with it. (It is made in Python: there is a span for each.)"""

    context: Context | None = None
    """What the sender was doing when it sent this, if it said so."""


def traced(
    group: Group, *, propagate: bool = False, provider: trace.TracerProvider | None = None
) -> Traced:
    """The group, with a span for each message that is sent, and for each that is worked on.

    propagate   tell the others what the sender was doing: all members have to wrap theirs
    provider    of the spans, if not the global one
    """
    if not isinstance(group, Group):
        raise UsageError(f"{group!r} cannot be wrapped: give a group, as join() makes it")
    return Traced(group, propagate=propagate, provider=provider)


class Traced:
    """A group whose sends and deliveries are seen as spans; everything else is at `group`."""

    def __init__(
        self, group: Group, *, propagate: bool, provider: trace.TracerProvider | None
    ) -> None:
        self.group = group
        self._propagate = propagate
        self._tracer = trace.get_tracer("ordercast", tracer_provider=provider)
        self._always: dict[str, AttributeValue] = {
            "messaging.system": "ordercast",
            "messaging.destination.name": group.name,
            "messaging.client.id": group.me,
        }

    async def send(self, payload: bytes, to: Iterable[str] | None = None) -> Receipt:
        """As `Group.send`. The span lasts as long as the group makes the sender wait."""
        payload = checked_payload(payload)
        attributes = self._attributes("send", len(payload))
        with self._tracer.start_as_current_span(
            f"send {self.group.name}", kind=SpanKind.PRODUCER, attributes=attributes
        ) as span:
            receipt = await self.group.send(_packed(payload) if self._propagate else payload, to)
            span.set_attribute("messaging.message.id", receipt.id)
            return receipt

    async def __aiter__(self) -> AsyncGenerator[TracedDelivery, None]:
        async for delivery in self.group:
            yield self._traced(delivery)

    async def __anext__(self) -> TracedDelivery:
        """One delivery, for `anext(traced)`."""
        return self._traced(await anext(self.group))

    def _traced(self, delivery: Delivery) -> TracedDelivery:
        payload, context = delivery.payload, None
        if self._propagate:
            payload, context = _unpacked(payload)
        return TracedDelivery(
            *(delivery.sender, delivery.number, payload, delivery.position, delivery.time_us),
            context,
        )

    @contextmanager
    def processing(self, delivery: Delivery) -> Iterator[Span]:
        """What the application does with a delivery. A link and no child, since every member has
        its own, and they may come long after the sender has finished."""
        if not isinstance(delivery, TracedDelivery):  # it was taken from the group itself
            delivery = self._traced(delivery)
        attributes = self._attributes("process", len(delivery.payload))
        attributes["messaging.message.id"] = delivery.id
        attributes["ordercast.position"] = delivery.position
        with self._tracer.start_as_current_span(
            f"process {self.group.name}",
            kind=SpanKind.CONSUMER,
            attributes=attributes,
            links=_links(delivery.context),
        ) as span:
            yield span

    def _attributes(self, operation: str, size: int) -> dict[str, AttributeValue]:
        return {
            **self._always,
            "messaging.operation.name": operation,
            "messaging.operation.type": operation,
            "messaging.message.body.size": size,
        }


def _packed(payload: bytes) -> bytes:
    carrier: dict[str, str] = {}
    propagation.inject(carrier)
    head = msgspec.msgpack.encode(carrier)
    return MAGIC + len(head).to_bytes(LENGTH, "big") + head + payload


def _unpacked(payload: bytes) -> tuple[bytes, Context | None]:
    """A payload of a member that does not take part is handed on as it is."""
    start = len(MAGIC) + LENGTH
    if not payload.startswith(MAGIC) or len(payload) < start:
        return payload, None
    end = start + int.from_bytes(payload[len(MAGIC) : start], "big")
    try:
        carrier = _decode(payload[start:end])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return payload, None
    return payload[end:], propagation.extract(carrier)


def _links(context: Context | None) -> list[Link]:
    sender = trace.get_current_span(context).get_span_context() if context is not None else None
    return [Link(sender)] if sender is not None and sender.is_valid else []
