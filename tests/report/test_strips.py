"""A long diagram in strips: nothing is lost between them, and partitions are shaded."""

from __future__ import annotations

from itertools import pairwise

from ordercast.report.diagram import draw
from ordercast.report.layout import build_layout
from ordercast.report.partitions import Partition, partitions_of
from ordercast.report.parts import whole
from ordercast.report.pieces import LAYERS
from ordercast.report.scene import build_scene
from ordercast.report.strips import LONGEST, edges_of, sleeping
from ordercast.trace import Manifest
from tests.report.builders import HELD, diagram, groups, random_run, run


def test_a_short_diagram_is_one_strip() -> None:
    text = draw(run(HELD), whole(run(HELD)), name="d", title="t")
    assert text.count("<svg") == 2  # The diagram, and the names over it.
    assert 'class="rest"' not in text


def test_every_piece_is_in_a_strip_that_it_reaches() -> None:
    trace = random_run(2, size=5, messages=30)
    scene = build_scene(trace, whole(trace))
    layout = build_layout(scene, width=900)
    layers = {name: list(layer(scene, layout)) for name, layer in LAYERS.items()}
    edges = edges_of(layout.width, layers)
    assert len(edges) > 3
    assert (edges[0], edges[-1]) == (0.0, layout.width)
    assert all(500 < right - left < LONGEST for left, right in pairwise(edges))
    lines = sleeping(edges, layers).split("\n")[1:]
    awake = sum(piece.left <= edges[1] for pieces in layers.values() for piece in pieces)
    both = sum(
        piece.left <= edges[1] <= piece.right for pieces in layers.values() for piece in pieces
    )
    assert awake + len(lines) - both == sum(map(len, layers.values()))


def test_cuts_avoid_marks_and_labels() -> None:
    trace = random_run(2, size=3, messages=40)
    scene = build_scene(trace, whole(trace))
    layout = build_layout(scene, width=900)
    layers = {name: list(layer(scene, layout)) for name, layer in LAYERS.items()}
    edges = edges_of(layout.width, layers)
    words = [*layers["marks"], *layers["labels"]]
    crossed = sum(piece.left < x < piece.right for x in edges[1:-1] for piece in words)
    blind = [layout.width * i / (len(edges) - 1) for i in range(1, len(edges) - 1)]
    assert crossed <= sum(piece.left < x < piece.right for x in blind for piece in words)


def test_a_partition_is_shaded_where_its_time_is_the_traces() -> None:
    faults = "loss:5%, partition:0|1,2@1ms+2.5ms, crash:0#3"
    extra = {"faults": faults, "clock": "virtual"}
    assert partitions_of(Manifest("r", (), extra=extra)) == [Partition(1_000, 3_500, "0 | 1,2")]
    assert partitions_of(Manifest("r", (), extra={"faults": faults})) == []
    done = [{"sides": "0|1,2", "start_us": 5, "end_us": 9}, {"sides": "1,2", "start_us": 20}]
    real = partitions_of(Manifest("r", (), extra={"faults": faults, "partitions": done}))
    assert real == [Partition(5, 9, "0 | 1,2"), Partition(20, 2**62, "1,2")]
    assert partitions_of(Manifest("r", (), extra={"partitions": ["nonsense"]})) == []
    svg = diagram(run(HELD, extra=extra))
    [shade] = groups(svg, "shade")
    [parted] = groups(svg, "parted")
    assert parted.text == "partition 0 | 1,2"
    assert float(shade.get("width", "0")) > 100
