"""The page of a sweep: curves against group size and loss rate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec import convert
from msgspec.structs import replace

from ordercast.errors import TraceError
from ordercast.report.sweeps import Configuration, is_sweep, read_sweep, render_sweep
from ordercast.trace.verdicts import TOTAL
from tests.report.chromium import Chromium
from tests.report.test_page import Page


def row(ordering: str, processes: int, faults: str, **more: Any) -> dict[str, Any]:
    return {
        "ordering": ordering,
        "dissemination": "direct",
        "processes": processes,
        "to": "everyone",
        "faults": faults,
        "runs": 10,
        "outcome": "holds",
        "failed": 0,
        "failure": None,
        "order_held": "fifo",
        "copies_per_broadcast": processes - 1.0,
        "control_bytes_per_broadcast": 8.0 * processes,
        "latency_us": {"p50": 1_000 * processes, "p90": 0, "p99": 3_000, "max": 0},
        "hold_us": {"p50": 0, "p90": 0, "p99": 500, "max": 0},
        "held_max": 3,
        **more,
    }


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    (tmp_path / "sweep").mkdir()
    failure = {"seed": 4, "property": "agreement", "sentence": "p1 <did>", "replay": "ordercast x"}
    rows = [
        row(ordering, processes, faults)
        for ordering in ("fifo", "causal_vector")
        for processes in (3, 6)
        for faults in ("", "loss:5%", "crash:0@5ms, loss:20%", "crash:0@5ms")
    ]
    rows[3] = rows[3] | {"outcome": "violated", "failed": 5, "failure": failure}
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "sweep" / "configurations.parquet")
    return tmp_path


def test_total_order_is_told_beside_the_ladder() -> None:
    total = {name: {"holds": 10} for name in TOTAL}
    some = total | {"total_acyclic": {"holds": 9}}
    rows = [row("total_skeen", 3, ""), row("fifo", 3, ""), row("causal_vector", 3, "")]
    rows[0] |= {"order_held": "async", "verdicts": total}
    rows[1] |= {"verdicts": some}
    found = convert(rows, list[Configuration])
    assert [one.orders_held for one in found] == ["async + total", "fifo", "fifo"]
    assert "held async + total" in Page(render_sweep(found)).words


def test_curves_against_size_and_loss(sweep: Path) -> None:
    assert is_sweep(sweep)
    rows = read_sweep(sweep)
    assert {(row.loss, row.other_faults) for row in rows} == {
        (0.0, ""),
        (5.0, ""),
        (20.0, "crash:0@5ms"),
        (0.0, "crash:0@5ms"),
    }
    page = Page(render_sweep(rows))
    for words in (
        "Promises were broken in 1 configuration",
        "Against the size of the group, without faults",
        "Against the size of the group, under loss:5%",
        "Against the share of packets lost, 6 processes",
        "Against the share of packets lost, 3 processes, under crash:0@5ms",
        "agreement violated in 5 of 10 runs p1 <did> Replay ordercast x",
        "causal_vector",
    ):
        assert words in page.words
    assert page.words.count("Control bytes of a message") == 8


def test_the_table_names_both_layers(sweep: Path) -> None:
    rows = read_sweep(sweep)
    assert "Ordering Dissemination Processes" in Page(render_sweep(rows)).words
    assert "causal_vector direct 3" in Page(render_sweep(rows)).words
    rows[0] = replace(rows[0], to="some")
    assert "Ordering Dissemination To Processes" in Page(render_sweep(rows)).words
    assert "fifo direct some 3" in Page(render_sweep(rows)).words


def test_one_size_and_no_loss_has_no_curve(sweep: Path) -> None:
    rows = [row for row in read_sweep(sweep) if row.processes == 3 and not row.faults]
    assert "there is no curve to draw" in Page(render_sweep(rows)).words


def test_an_empty_pass_is_seen(sweep: Path) -> None:
    rows = [replace(row, outcome="holds", failure=None) for row in read_sweep(sweep)]
    assert "Every promise held in every run" in Page(render_sweep(rows)).words
    rows[0] = replace(rows[0], empty=4)
    words = Page(render_sweep(rows)).words
    assert "Every promise held in every run" in words
    assert "Nothing was delivered in 4 of them, so there was nothing to check." in words
    assert "✓ held (nothing delivered in 4 of 10 runs) fifo" in words
    words = Page(render_sweep([replace(row, empty=row.runs) for row in rows])).words
    assert "∅ Every promise held, but there was nothing to check" in words
    assert words.count("∅ nothing delivered") == len(rows)
    assert "✓" not in words


def test_a_single_point_is_not_drawn_as_a_line(sweep: Path) -> None:
    rows = [row for row in read_sweep(sweep) if not row.faults]
    threads = render_sweep(rows).count('class="thread"')
    assert threads == 6 * 2
    alone = [row for row in rows if (row.ordering, row.processes) != ("fifo", 6)]
    page = render_sweep(alone)
    assert page.count('class="thread"') == 6
    assert page.count('class="own"') == 6 * 2


def test_what_is_no_table_is_refused(sweep: Path) -> None:
    (sweep / "sweep" / "configurations.parquet").write_text("nonsense")
    with pytest.raises(TraceError, match="not the table of a sweep"):
        read_sweep(sweep)


def test_it_opens_without_complaint(browser: Chromium, sweep: Path) -> None:
    page = sweep / "page.html"
    page.write_text(render_sweep(read_sweep(sweep)))
    tab = browser.open(page)
    assert tab.js("document.querySelectorAll('.plot .curve').length") == 8 * 6 * 2
    assert (tab.complaints(), tab.requests()) == ([], [page.as_uri()])


def test_names_are_written_as_they_are(browser: Chromium, sweep: Path) -> None:
    page = sweep / "page.html"
    page.write_text(render_sweep(read_sweep(sweep)), encoding="utf-8")
    cell = "document.querySelector('.configurations tbody th')"
    shown = f"getComputedStyle({cell}, '::first-letter').textTransform"
    assert browser.open(page).js(shown) == "none"
