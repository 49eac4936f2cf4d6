"""`ordercast stream watch`: what it prints, how it ends, and that a kill changes nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from ordercast.cli import main, stream_watch
from ordercast.pipeline import judge
from ordercast.pipeline.streaming.watch_query import Watching
from ordercast.trace.directory import TraceWriter
from ordercast.trace.event import Event
from ordercast.trace.jsonl import encode_event
from ordercast.trace.manifest import Manifest
from ordercast.trace.parquet import to_table
from ordercast.trace.verdicts import Verdict

from ..conformance.random_traces import random_trace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KILLS = 1
"""Each takes half a minute; up to 3 there are events enough."""
QUICK = ["--conf", "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1"]
"""Short jobs are over before the JVM's second compiler pays off."""
WATCH = [sys.executable, "-m", "ordercast", "stream", "watch", *QUICK]


def environment(scratch: Path) -> dict[str, str]:
    scratch.mkdir(exist_ok=True)
    return {**os.environ, "TMPDIR": str(scratch)}


def lines(output: str) -> Iterator[dict[str, Any]]:
    for line in output.splitlines():
        yield json.loads(line)


@pytest.mark.timeout(900)
def test_once_says_what_verify_says(
    stateful: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    traces = [random_trace(seed, f"run {seed}") for seed in range(12)]
    with TraceWriter(tmp_path / "trace") as writer:
        for trace in traces:
            writer.add_manifest(trace.manifest)
            writer.write_all(trace.events)
    file = tmp_path / "trace" / "events.jsonl"
    file.write_bytes(file.read_bytes().rstrip(b"\n"))  # as some programs leave it
    options = [str(tmp_path / "trace"), "--once", "--json", "--checkpoint", str(tmp_path / "state")]
    expected = judge(tmp_path / "trace")
    for _ in range(2):
        code, done = main(["stream", "watch", *options]), capsys.readouterr()
        assert code == expected.exit_code, done.err
        end = list(lines(done.out))[-1]
        assert end["kind"] == "end"
        assert end["events"] == expected.events
        told = {(v["run"], v["property"]): essence(v) for v in end["verdicts"]}
        assert told == {(v.run, v.property): essence(asdict(v)) for v in expected.verdicts}
    assert len(list(lines(done.out))) == 1, "there is nothing new to say"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ([], 2),
        (["--quiesced"], 1),  # p0 owes itself a delivery
        (["--order", "fifo"], 0),
        (["--order", "fifo", "--quiesced"], 1),
        (["--only", "validity"], 2),
    ],
)
def test_what_is_asked_for_decides_as_in_verify(
    stateful: SparkSession, arguments: list[str], code: int, tmp_path: Path
) -> None:
    """The manifest does not say whether the run came to rest."""
    (tmp_path / "manifest.jsonl").write_text('{"run":"r","processes":["a","b"]}\n')
    rows = [Event("r", 0, 0, "send", 0, 1), Event("r", 1, 0, "deliver", 0, 1)]
    (tmp_path / "events.jsonl").write_bytes(b"".join(map(encode_event, rows)))
    assert main(["verify", str(tmp_path), "--here", *arguments]) == code
    assert main(["stream", "watch", str(tmp_path), "--once", *arguments]) == code


def test_files_of_events_in_any_format_of_spark_s_will_do(
    stateful: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "parts").mkdir()
    for at, part in enumerate((swapped(10)[:9], swapped(10)[9:])):
        pq.write_table(to_table(part), tmp_path / "parts" / f"{at}.parquet")
    command = ["stream", "watch", str(tmp_path / "parts"), "--format", "parquet", "--once"]
    code, done = main([*command, "--quiesced", "--json"]), capsys.readouterr()
    assert code == 1, done.err
    assert "columns, as in the files that are there: run:string,process:int,posit" in done.err
    with TraceWriter(tmp_path / "trace") as writer:
        writer.write_all(swapped(10))
    expected = judge(tmp_path / "trace", quiesced=True)
    end = list(lines(done.out))[-1]
    told = {v["property"]: essence(v) for v in end["verdicts"]}
    assert told == {v.property: essence(asdict(v)) for v in expected.verdicts}

    assert main([*command, "--schema", "run string, process int, position long"]) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("ordercast stream watch: the stream has no column 'kind', and a trace")


def asdict(verdict: Verdict) -> dict[str, Any]:
    import msgspec

    found: dict[str, Any] = msgspec.to_builtins(verdict)
    return found


def essence(verdict: dict[str, Any]) -> tuple[object, ...]:
    witness = verdict["witness"] if verdict["verdict"] == "violated" else None
    sentence = witness and witness["sentence"]
    return verdict["verdict"], verdict["checked"], verdict["violations"], sentence


def swapped(messages: int) -> list[Event]:
    """p0 sends to p1, which delivers every two messages in the wrong order."""
    sent = [Event("live", 0, n - 1, "send", 0, n, (1,)) for n in range(1, messages + 1)]
    numbers = [n + 1 if n % 2 else n - 1 for n in range(1, messages + 1)]
    got = [Event("live", 1, at, "deliver", 0, n) for at, n in enumerate(numbers)]
    return [event for pair in zip(sent, got, strict=True) for event in pair]


@pytest.mark.timeout(900)
def test_a_watch_that_is_killed_goes_on_where_it_was(
    stateful: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file grows all the while; kill -9 at random moments; then everything is as in batch."""
    trace, random = tmp_path / "trace", Random()
    trace.mkdir()
    events = swapped(400)
    file = (trace / "events.jsonl").open("ab", buffering=0)
    state = str(tmp_path / "state")
    options = [str(trace), "--checkpoint", state, "--json", "--trigger", "100ms"]
    violated_early = False
    for part in range(KILLS):
        for event in events[part * 200 : part * 200 + 200]:
            file.write(encode_event(event))
        watching = subprocess.Popen(
            [*WATCH, *options], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert watching.stdout is not None
        for line in watching.stdout:
            news = json.loads(line)
            if news["kind"] == "status":
                break
            violated_early |= news["verdict"]["verdict"] == "violated"
        file.write(encode_event(events[200 * KILLS + part]))  # while it is read
        time.sleep(random.random())
        watching.kill()
        watching.wait()
        watching.stdout.close()
    for event in events[201 * KILLS :]:
        file.write(encode_event(event))
    file.close()
    manifest = Manifest("live", ("p0", "p1"), quiesced=True, order="fifo")
    (trace / "manifest.jsonl").write_bytes(manifest.to_json() + b"\n")
    code, done = main(["stream", "watch", *options, "--until-rest"]), capsys.readouterr()
    assert code == 1, done.err
    expected = judge(trace)
    end = list(lines(done.out))[-1]
    told = {v["property"]: essence(v) for v in end["verdicts"]}
    assert told == {v.property: essence(asdict(v)) for v in expected.verdicts}
    assert end["events"] == len(events)
    assert violated_early, "fifo was violated in the first rows"


@pytest.mark.timeout(900)
def test_asked_to_end_it_says_the_verdicts_so_far(tmp_path: Path) -> None:
    trace, scratch = tmp_path / "trace", tmp_path / "scratch"
    trace.mkdir()
    (trace / "events.jsonl").write_bytes(b"".join(map(encode_event, swapped(10))))
    watching = subprocess.Popen(
        [*WATCH, str(trace)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=environment(scratch),
    )  # fmt: skip
    assert watching.stdout is not None
    first = watching.stdout.readline()
    assert first == (
        "live: fifo ✘ violated: p0 sent 0:1 and then 0:2, but p1 delivered 0:2 before 0:1\n"
    )
    watching.send_signal(signal.SIGINT)
    out, errors = watching.communicate()
    assert watching.returncode == 1, errors
    assert "Traceback" not in errors
    assert "live: 20 events" in out
    assert "What was promised: ✘ violated" in out
    assert list(scratch.iterdir()) == [], "something was left behind"


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [(3, "stopped before any of its events were judged"), (0, "there is no event in it yet")],
)
@pytest.mark.timeout(900)
def test_stopped_before_it_has_begun_it_says_so(
    stateful: SparkSession,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    rows: int,
    sentence: str,
) -> None:
    (tmp_path / "events.jsonl").write_bytes(b"".join(map(encode_event, swapped(2)[:rows])))
    stopped = threading.Event()
    stopped.set()
    monkeypatch.setattr(stream_watch, "stoppable", lambda: nullcontext(stopped))
    monkeypatch.setattr(Watching, "wait", lambda watching, timeout_s: False)
    assert main(["stream", "watch", str(tmp_path)]) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == f"ordercast stream watch: {tmp_path}: {sentence}"


@pytest.mark.timeout(900)
def test_a_bad_row_ends_it_with_a_sentence(
    stateful: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "events.jsonl").write_bytes(encode_event(swapped(1)[0]) + b"{}\n")
    assert main(["stream", "watch", str(tmp_path)]) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith(f"ordercast stream watch: {tmp_path}/events.jsonl, line 2: not an event")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere"], "nowhere: there is no such file or directory"),
        ([".", "--order", "sideways"], "there is no order 'sideways'"),
        ([".", "--only", "fifo,nice"], "there is no property 'nice'"),
        ([".", "--trigger", "soon"], "'soon' is not a duration such as"),
        ([".", "--keep", "0"], "--keep 0: choose 1 or more"),
        ([".", "--once", "--until-rest"], "--once ends by itself"),
        ([".", "--quiesced"], "give it with --once"),
        ([".", "--option", "a=b"], "--schema and --option are for Spark's reader: give its --form"),
        ([".", "--format", "json", "--until-rest"], "files that are read with --format have none"),
        (
            [".", "--format", "json", "--once", "--option", "maxFilesPerTrigger=1"],
            "--once judges all that is there at once: leave out maxFilesPerTrigger",
        ),
    ],
)
def test_what_cannot_be_is_refused_before_spark_starts(
    arguments: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert main(["stream", "watch", *arguments]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert sentence in line
