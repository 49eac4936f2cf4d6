"""Spans of OpenTelemetry: from who sent a message to what each member did with it."""

from __future__ import annotations

import asyncio

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

import ordercast
from ordercast import UsageError
from ordercast.runtime.telemetry import MAGIC, Traced, TracedDelivery

from .test_join import joined

pytestmark = pytest.mark.timeout(60)


def provider() -> tuple[TracerProvider, InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    made = TracerProvider()
    made.add_span_processor(SimpleSpanProcessor(exporter))
    return made, exporter


async def first(group: Traced) -> TracedDelivery:
    async with asyncio.timeout(20):
        async for delivery in group:
            return delivery
    raise AssertionError("nothing came")


def of_kind(spans: tuple[ReadableSpan, ...], kind: SpanKind) -> list[ReadableSpan]:
    return [span for span in spans if span.kind is kind]


@pytest.mark.parametrize("propagate", [True, False])
def test_what_is_processed_is_linked_to_what_was_sent(propagate: bool) -> None:
    traces, exporter = provider()
    tracer = traces.get_tracer("test")

    async def run() -> None:
        async with joined("a", "b") as groups:
            a, b = (ordercast.traced(g, propagate=propagate, provider=traces) for g in groups)
            with tracer.start_as_current_span("an order comes in"):
                receipt = await a.send(b"created 17")
            for group in (a, b):
                delivery = await first(group)
                assert (delivery.payload, delivery.id) == (b"created 17", receipt.id)
                with group.processing(delivery), tracer.start_as_current_span("work"):
                    pass

    asyncio.run(run())
    spans = exporter.get_finished_spans()
    [order] = [span for span in spans if span.name == "an order comes in"]
    [sent] = of_kind(spans, SpanKind.PRODUCER)
    assert sent.name == "send g"
    assert sent.parent is not None
    assert sent.parent.span_id == order.context.span_id
    assert sent.attributes is not None
    assert sent.attributes["messaging.message.id"] == "a:1"
    assert sent.attributes["messaging.message.body.size"] == len(b"created 17")
    processed = of_kind(spans, SpanKind.CONSUMER)
    assert [span.attributes["messaging.client.id"] for span in processed if span.attributes] == [
        "a",
        "b",
    ]
    for span in processed:
        assert span.attributes is not None
        assert span.attributes["messaging.message.id"] == "a:1"
        linked = [link.context.span_id for link in span.links]
        assert linked == ([sent.context.span_id] if propagate else [])
    inner = [span.parent.span_id for span in spans if span.name == "work" and span.parent]
    assert inner == [span.context.span_id for span in processed]


def test_nothing_travels_unless_asked_for() -> None:
    traces, _ = provider()

    async def run() -> None:
        async with joined("a", "b") as (a, b):
            await ordercast.traced(a, provider=traces).send(b"plain")
            assert (await anext(b)).payload == b"plain"
            await ordercast.traced(a, propagate=True, provider=traces).send(b"wrapped")
            assert (await anext(b)).payload.startswith(MAGIC)
            tracing = ordercast.traced(a, propagate=True, provider=traces)
            assert [(await anext(tracing)).payload for _ in range(2)] == [b"plain", b"wrapped"]

    asyncio.run(run())


@pytest.mark.parametrize("propagate", [True, False])
@pytest.mark.parametrize("payload", ["text", 5, None])
def test_what_cannot_be_sent_is_told_as_by_the_group(propagate: bool, payload: object) -> None:
    async def run() -> None:
        async with joined("a") as (a,):
            traced = ordercast.traced(a, propagate=propagate, provider=provider()[0])
            kind = type(payload).__name__
            with pytest.raises(UsageError, match=f"a message of type {kind}: send bytes"):
                await traced.send(payload)  # type: ignore[arg-type]

    asyncio.run(run())


def test_what_is_no_group_is_not_wrapped() -> None:
    with pytest.raises(UsageError, match="None cannot be wrapped: give a group"):
        ordercast.traced(None)  # type: ignore[arg-type]


def test_a_delivery_that_was_taken_from_the_group_is_linked_as_well() -> None:
    traces, exporter = provider()

    async def run() -> None:
        async with joined("a") as (a,):
            traced = ordercast.traced(a, propagate=True, provider=traces)
            await traced.send(b"one")
            with traced.processing(await anext(a)):
                pass

    asyncio.run(run())
    spans = exporter.get_finished_spans()
    [sent], [done] = (of_kind(spans, kind) for kind in (SpanKind.PRODUCER, SpanKind.CONSUMER))
    assert sent.context is not None
    assert [link.context.span_id for link in done.links] == [sent.context.span_id]
    assert done.attributes is not None
    assert done.attributes["messaging.message.body.size"] == 3


@pytest.mark.parametrize("kind", [bytearray, memoryview])
def test_what_is_as_good_as_bytes_is_sent(kind: type) -> None:
    traces, exporter = provider()

    async def run() -> None:
        async with joined("a") as (a,):
            traced = ordercast.traced(a, propagate=True, provider=traces)
            await traced.send(kind(b"plain"))
            assert (await first(traced)).payload == b"plain"

    asyncio.run(run())
    [span] = exporter.get_finished_spans()
    assert span.attributes is not None
    assert span.attributes["messaging.message.body.size"] == len(b"plain")


@pytest.mark.parametrize(
    "payload",
    [
        *(b"plain", b"", MAGIC, MAGIC + b"\xff\xff", MAGIC + b"\0\1\xc1rest"),
        MAGIC + b"\0\4\x81\xa1\xff\xa0rest",  # {"\xff": ""}, which is no text
    ],
)
def test_what_has_no_context_is_handed_on_as_it_is(payload: bytes) -> None:
    traces, exporter = provider()

    async def run() -> None:
        async with joined("a") as (a,):
            await a.send(payload)
            traced = ordercast.traced(a, propagate=True, provider=traces)
            delivery = await first(traced)
            assert (delivery.payload, delivery.context) == (payload, None)
            with traced.processing(delivery):
                pass

    asyncio.run(run())
    [span] = exporter.get_finished_spans()
    assert span.links == ()
