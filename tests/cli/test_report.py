"""`ordercast report`: one page from a trace and what is known about it, without starting Spark."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import pytest

from ordercast.cli import main
from ordercast.oracle import judge
from ordercast.trace import Trace
from ordercast.trace.verdicts import PROPERTIES, Judgement, promised
from tests.report.test_results import stored
from tests.report.test_sweeps import sweep

__all__ = ["sweep"]


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return simulated(tmp_path / "trace", "causal_vector")


def simulated(path: Path, ordering: str) -> Path:
    words = ["--processes", "3", "--messages", "4", "--dissemination", "best_effort"]
    assert main(["simulate", "--ordering", ordering, *words, "--trace", str(path)]) == 0
    return path


def judged(path: Path) -> Judgement:
    traces = Trace.load(path)
    return Judgement(
        runs=len(traces),
        events=sum(len(trace.events) for trace in traces),
        verdicts=tuple(verdict for trace in traces for verdict in judge(trace)),
        promises={t.manifest.run: promised(t.manifest, PROPERTIES) for t in traces},
    )


def page_of(*words: str | Path, output: Path) -> str:
    assert main(["report", *map(str, words), "-o", str(output)]) == 0
    return output.read_text(encoding="utf-8")


def test_from_verdicts_that_were_printed(trace: Path, tmp_path: Path) -> None:
    known = tmp_path / "verdicts.json"
    known.write_text(json.dumps(judged(trace).to_json()))
    page = page_of(trace, "--verdicts", known, output=tmp_path / "page.html")
    assert "Causal order held in run causal_vector-best_effort-n3-m4-s0" in page
    assert "Replay" in page


def test_from_result_tables(trace: Path, tmp_path: Path) -> None:
    results = stored(judged(trace), tmp_path / "results")
    page = page_of(trace, "--results", results, output=tmp_path / "page.html")
    assert "Causal order held in run causal_vector-best_effort-n3-m4-s0" in page
    assert 'class="plot"' in page


def test_a_sweep_gives_its_curves(sweep: Path, tmp_path: Path) -> None:
    page = page_of(sweep, output=tmp_path / "page.html")
    assert "Against the size of the group" in page


def test_two_traces_side_by_side(
    trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = simulated(tmp_path / "other", "unordered")

    def small(_: Any, path: Path, **__: Any) -> Judgement:
        return judged(path)

    monkeypatch.setattr("ordercast.cli.report.judge", small)
    page = page_of(trace, "--compare", other, output=tmp_path / "page.html")
    assert "<b>B</b> is run unordered-best_effort-n3-m4-s0" in page
    assert 'data-pair="runs"' in page


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--compare", "x", "--results", "y"], "leave --results and --verdicts out"),
        (["--results", "nowhere"], "there are no results of verify --output here"),
        (["--verdicts", "manifest.jsonl"], "not the output of 'ordercast verify --json'"),
        (["--here", "-o", "manifest.jsonl"], "-o manifest.jsonl would be written into what is "),
        (["--compare", "x", "-o", "x"], "-o x would be written into what is read, x: choose"),
        (["--verdicts", "v", "-o", "v"], "-o v would be written into what is read, v: choose"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(
    trace: Path,
    words: list[str],
    why: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(trace)
    assert main(["report", str(trace), *words]) == 2
    assert why in capsys.readouterr().err


def test_a_full_disk_leaves_the_page_before(
    trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    page.write_text("the one before")
    page.chmod(0o600)
    (tmp_path / "link.html").symlink_to(page)

    def full(self: Path, *_: object, **__: object) -> int:
        self.write_bytes(b"<!doc")
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", full)
        for name in ("page.html", "link.html"):
            assert main(["report", str(trace), "--here", "-o", str(tmp_path / name)]) == 2
            words = f"{tmp_path / name}: the report cannot be written: No space left on device"
            assert words in capsys.readouterr().err
    assert page.read_text() == "the one before"
    assert {file.name for file in tmp_path.iterdir() if file.suffix} == {
        "page.html",
        "link.html",
    }
    assert main(["report", str(trace), "--here", "-o", str(tmp_path / "link.html")]) == 0
    assert page.read_text().startswith("<!doctype html>")
    assert page.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "link.html").is_symlink()


def test_a_device_is_written_to(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(trace), "--here", "-o", "/dev/full"]) == 2
    assert "/dev/full: the report cannot be written: No space left" in capsys.readouterr().err
    assert not Path("/dev/full").is_file()
