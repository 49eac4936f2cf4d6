"""The page in a real browser: it opens without complaint, and shows what it says."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from ordercast.report import write
from tests.report.builders import QUESTION, broken, judgement_on, run

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None,
    reason="no chromium on this machine: NOBODY HAS LOOKED AT THE PAGE (apt install chromium)",
)


@pytest.fixture
def page(tmp_path: Path) -> Path:
    traces = [run(QUESTION)]
    return write(judgement_on(traces, broken()), traces, tmp_path / "report.html")


def browse(page: Path, tmp_path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    assert CHROMIUM is not None
    quiet = "background-networking", "component-update", "sync", "gpu", "extensions"
    return subprocess.run(
        [
            CHROMIUM,
            *("--headless", "--no-sandbox", "--no-first-run", "--hide-scrollbars"),
            *(f"--disable-{name}" for name in quiet),
            *("--enable-logging=stderr", f"--user-data-dir={tmp_path / 'profile'}"),
            *options,
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )


def test_it_opens_without_complaint(page: Path, tmp_path: Path) -> None:
    seen = browse(page, tmp_path, "--dump-dom")
    assert "Causal order was violated in run r1" in seen.stdout
    assert seen.stdout.count('class="diagram"') == 2
    complaints = [line for line in seen.stderr.splitlines() if "CONSOLE" in line]
    assert complaints == []


@pytest.mark.parametrize("scheme", [0, 1], ids=["dark", "light"])
def test_it_can_be_photographed(page: Path, tmp_path: Path, scheme: int) -> None:
    shot = tmp_path / "page.png"
    browse(
        page,
        tmp_path,
        f"--screenshot={shot}",
        "--window-size=1280,1600",
        f"--blink-settings=preferredColorScheme={scheme}",
    )
    picture = shot.read_bytes()
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", picture[16:24]) == (1280, 1600)
    assert len(picture) > 30_000  # A blank page is a tenth of this.


def test_it_can_be_printed(page: Path, tmp_path: Path) -> None:
    paper = tmp_path / "page.pdf"
    browse(page, tmp_path, f"--print-to-pdf={paper}")
    assert paper.read_bytes()[:5] == b"%PDF-"
