"""The page of `ordercast run` is made of what is drawn; a huge trace is never read as a whole."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

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
