"""`ordercast run --follow`: verdicts while real processes run, and the same ones afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from .test_stream_watch import QUICK, environment

ONE_RUN = ["--conf", "spark.sql.shuffle.partitions=1"]
"""A second partition would have nothing to do but start its workers."""
RUN = [sys.executable, "-m", "ordercast", "run", "--follow", *QUICK, *ONE_RUN]


@pytest.mark.timeout(900)
def test_the_watch_says_what_the_judge_says(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    options = ["--dissemination", "majority_acks", "--faults", "kill:1@500ms+500ms,loss:1%"]
    done = subprocess.run(
        [*RUN, *options], capture_output=True, text=True, cwd=tmp_path, env=environment(scratch)
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\nThe watch said the same of " in done.stdout
    assert "the watch: starting Spark beside the group" in done.stderr
    assert "events judged, 0 behind; order held so far: " in done.stderr
    assert "the watch: causal" not in done.stderr
    [directory] = (tmp_path / "runs").iterdir()
    assert not (directory / "members").exists()
    assert list(scratch.iterdir()) == [], "something was left behind"


@pytest.mark.timeout(900)
def test_a_violation_is_told_while_the_group_runs(tmp_path: Path) -> None:
    """They would talk for minutes, and leave Spark time to start; what is wrong is told long before
    they are done."""
    command = [*RUN, "--order", "unordered", "--swap-pairs", "--processes", "2"]
    command += ["--messages", "6000", "--interval", "100"]
    running = subprocess.Popen(
        [*command, "--timeout", "380"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        cwd=tmp_path, env=environment(tmp_path / "scratch"),
    )  # fmt: skip
    assert running.stderr is not None
    heard = []
    for line in running.stderr:
        heard.append(line)
        if "the watch: fifo ✘ violated: " in line:
            break
    assert running.poll() is None
    assert not any("stopping the group" in line for line in heard)
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=120)
    assert running.returncode == 130, errors
    assert "what happened so far is in runs" in errors
    assert "stopping Spark; Ctrl-C again ends it at once" in errors
    assert "Traceback" not in errors
    [directory] = (tmp_path / "runs").iterdir()
    assert not (directory / "members").exists()
    assert list((tmp_path / "scratch").iterdir()) == [], "something was left behind"
    assert not _alive(directory.name)


def _alive(run: str) -> list[str]:
    """Processes of that run."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if run.encode() in (process / "cmdline").read_bytes() and process.name != str(
                os.getpid()
            ):
                found.append(process.name)
        except OSError:
            continue
    return found
