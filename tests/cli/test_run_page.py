"""The page of `ordercast run` is made of what is drawn; a huge trace is never read as a whole. And
what is known is not lost when something else fails."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ordercast.cli import main, run
from ordercast.errors import SetupError

PROGRAM = """
import sys
from ordercast.cli import main
from ordercast.report import reading
from ordercast.trace import Trace

def load(*arguments, **options):
    raise AssertionError("the whole trace is being read")

reading.SMALL_BYTES = 0  # every trace is a huge one
Trace.load = load
sys.exit(main(["run", "--messages", "3", "--trace", "trace"]))
"""


@pytest.mark.timeout(200)
def test_the_page_of_a_huge_run(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout + done.stderr
    page = (tmp_path / "trace" / "report.html").read_text()
    assert page.count('class="arrow') >= 18, "each of 9 messages goes to two others"


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("form", ["--json", ""])
def test_verdicts_are_told_even_if_the_page_cannot_be_written(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--messages", "1", "--trace", str(tmp_path / "trace"), "-o", "/dev/full"]
    assert main(["run", *options, *filter(None, [form])]) == 2
    told = capsys.readouterr()
    if form:
        assert json.loads(told.out)["verdicts"]
    else:
        assert "What was promised: ✔ holds." in told.out
        assert "report:" not in told.out
    last = "ordercast run: /dev/full: the report cannot be written: No space left on device"
    assert told.err.splitlines()[-1] == last


def test_a_run_that_cannot_be_judged_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise SetupError("Spark did not start")

    monkeypatch.setattr(run, "judge", fail)
    trace = tmp_path / "a trace"
    assert main(["run", "--messages", "1", "--trace", str(trace)]) == 2
    assert capsys.readouterr().err.splitlines()[-2:] == [
        f"the trace is kept in {trace}: judge it later with ordercast verify '{trace}'",
        "ordercast run: Spark did not start",
    ]
    assert (trace / "manifest.jsonl").is_file()
