"""`ordercast bench` hands over to the benchmarks of the repository."""

from __future__ import annotations

from pathlib import Path

import pytest

import ordercast
from ordercast.cli import main
from ordercast.cli.bench import BENCHMARKS


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_that_is_named_exists(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", name, "--help"]) == 0
    assert capfd.readouterr().out.startswith("usage: ")


def test_the_exit_code_is_the_benchmarks(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "costs", "--no-such-option"]) == 2
    assert "unrecognized arguments" in capfd.readouterr().err


def test_without_a_repository_it_says_where_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ordercast, "__file__", str(tmp_path / "site" / "ordercast" / "x.py"))
    assert main(["bench", "runtime"]) == 2
    assert "clone the repository" in capsys.readouterr().err
