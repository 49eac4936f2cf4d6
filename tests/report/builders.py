"""Runs written by hand, as lines that read like a story, and a generator of random ones."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any
from xml.etree import ElementTree

from ordercast.report.diagram import draw
from ordercast.report.layout import Layout, build_layout
from ordercast.report.parts import Part, whole
from ordercast.report.scene import Scene, build_scene
from ordercast.trace import Event, Manifest, Trace
from ordercast.trace.verdicts import PROPERTIES, Judgement, Outcome, Verdict, Witness

SVG = "{http://www.w3.org/2000/svg}"


def run(story: str, *, size: int = 3, name: str = "r1", **manifest: Any) -> Trace:
    """Each line: time in µs (or `-`), process, kind, message, and `to` with its destinations."""
    rows: list[Event] = []
    positions: dict[int, int] = {}
    for line in filter(None, map(str.strip, story.splitlines())):
        time, process, kind, *rest = line.split()
        who = int(process.removeprefix("p"))
        origin, number = map(int, rest[0].split(":")) if rest else (None, None)
        to = tuple(int(text) for text in rest[2].split(",")) if len(rest) > 2 else None
        rows.append(
            Event(
                run=name,
                process=who,
                position=positions.get(who, 0),
                kind=kind,  # type: ignore[arg-type]
                origin=origin,
                number=number,
                destinations=to,
                time_us=None if time == "-" else int(time),
            )
        )
        positions[who] = positions.get(who, 0) + 1
    names = manifest.pop("processes", tuple(f"p{process}" for process in range(size)))
    return Trace.of(Manifest(name, names, **{"quiesced": True, **manifest}), rows)


QUESTION = """
    0     p0  send     0:1
    0     p0  deliver  0:1
    900   p1  receive  0:1
    900   p1  deliver  0:1
    2100  p1  send     1:1
    2100  p1  deliver  1:1
    3000  p2  receive  1:1
    3000  p2  deliver  1:1
    3400  p0  receive  1:1
    3400  p0  deliver  1:1
    5600  p2  receive  0:1
    5600  p2  deliver  0:1
"""
"""p2 delivers the answer before the question."""

HELD = """
    0     p0  send     0:1
    0     p0  deliver  0:1
    900   p1  receive  0:1
    900   p1  deliver  0:1
    2100  p1  send     1:1
    2100  p1  deliver  1:1
    3000  p2  receive  1:1
    3400  p0  receive  1:1
    3400  p0  deliver  1:1
    5600  p2  receive  0:1
    5600  p2  deliver  0:1
    5600  p2  deliver  1:1
"""
"""The same, and p2 holds the answer until the question is there."""


def random_run(
    seed: int, *, size: int = 4, messages: int = 6, clocks: bool = True, crash: bool = False
) -> Trace:
    """Unordered broadcast with random delays; deliveries wait at random, and one may crash."""
    random = Random(seed)
    happenings: list[tuple[int, int, str, str]] = []
    dead = {random.randrange(size): random.randint(1_000, 20_000)} if crash else {}
    for origin in range(size):
        time = 0
        for number in range(1, messages + 1):
            time += random.randint(0, 4_000)
            if time >= dead.get(origin, 10**9):
                break
            message = f"{origin}:{number}"
            happenings += [(time, origin, "send", message), (time, origin, "deliver", message)]
            for process in set(range(size)) - {origin}:
                arrival = time + random.randint(0, 9_000)
                wait = random.choice((0, 0, random.randint(1, 6_000)))
                happenings.append((arrival, process, "receive", message))
                happenings.append((arrival + wait, process, "deliver", message))
    happenings += [(time, process, "crash", "") for process, time in dead.items()]
    happenings.sort(key=lambda happening: happening[0])
    lines = [
        f"{time if clocks else '-'} p{process} {kind} {message}"
        for time, process, kind, message in happenings
        if time < dead.get(process, 10**9) or kind == "crash"
    ]
    return run("\n".join(lines), size=size)


def judgement_on(traces: Iterable[Trace], *verdicts: Verdict, **promises: Any) -> Judgement:
    """All properties hold with ten facts each, but for the verdicts given."""
    known = list(traces)
    found = {
        (trace.manifest.run, name): Verdict(trace.manifest.run, name, "holds", 10, 0)
        for trace in known
        for name in PROPERTIES
    }
    found |= {(verdict.run, verdict.property): verdict for verdict in verdicts}
    promised = promises.get("promises", ("no_duplication", "agreement", "fifo", "causal"))
    return Judgement(
        runs=len(known),
        events=sum(len(trace.events) for trace in known),
        verdicts=tuple(found.values()),
        promises={trace.manifest.run: promised for trace in known},
    )


def broken(
    property: str = "causal",
    *,
    run: str = "r1",
    outcome: Outcome = "violated",
    process: int = 2,
    messages: tuple[str, ...] = ("0:1", "1:1"),
    sentence: str = "p1 delivered 0:1 and then sent 1:1, but p2 delivered 1:1 before 0:1",
) -> Verdict:
    witness = Witness(process, messages, sentence)
    return Verdict(run, property, outcome, 10, int(outcome == "violated"), witness)


def laid_out(trace: Trace, part: Part | None = None, width: float = 900) -> tuple[Scene, Layout]:
    scene = build_scene(trace, part or whole(trace))
    return scene, build_layout(scene, width=width)


def diagram(trace: Trace, part: Part | None = None) -> ElementTree.Element:
    """The drawn SVG, parsed: it must be well-formed XML for this. Of a long one, all strips."""
    drawn = draw(trace, part or whole(trace), name="d", title="A run")
    box, _, rest = drawn.partition('<script type="text/plain" class="rest">')
    svg = ElementTree.fromstring(box).find(f".//{SVG}svg[@role='img']")
    assert svg is not None
    layers = {group.get("class"): group for group in svg.findall(f"{SVG}g")}
    right = float(svg.get("width", ""))
    for line in rest.partition("</script>")[0].split("\n")[1:]:
        layer, left, _, shape = line.split("\t")
        if float(left) > right:
            layers[layer].extend(ElementTree.fromstring(f"<g xmlns='{SVG[1:-1]}'>{shape}</g>"))
    return svg


def groups(svg: ElementTree.Element, *classes: str) -> list[ElementTree.Element]:
    return [
        element for element in svg.iter() if set(classes) <= set(element.get("class", "").split())
    ]
