"""`ordercast verify` as a user meets it. It takes the session that runs in the tests already."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ordercast import pipeline
from ordercast.cli import main
from ordercast.trace.jsonl import encode_event
from ordercast.trace.parquet import to_table
from ordercast.trace.verdicts import properties_of_order, worst

from ..pipeline.builders import Run, run, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("spark")

# Process 1 of each owes a delivery, which is a violation only if nothing can be in a hole.
RUNS = [run(name, "join s1 d0:1", "join") for name in ("a", "b")]


def verify(*arguments: object) -> int:
    return main(["verify", *map(str, arguments)])


def without_progress(said: str) -> list[str]:
    """On busy cores, the first job takes so long that it says how far it is."""
    return [line for line in said.splitlines() if not line.startswith("… ")]


def parquet(path: Path, change: Callable[[pa.Table], pa.Table]) -> Path:
    """Both runs, and a change in the file of one of them."""
    write(path, [RUNS[0]], "parquet")
    lines = b"".join(one.manifest.to_json() + b"\n" for one in RUNS)
    (path / "manifest.jsonl").write_bytes(lines)
    file = path / "events" / "b.parquet"
    pq.write_table(change(to_table(RUNS[1].events)), file)
    return file


def value(name: str, row: int, new: Any) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        rows = table.to_pylist()
        rows[row][name] = new
        return pa.Table.from_pylist(rows, table.schema)

    return change


def of_type(name: str, kind: pa.DataType) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        column = table.column(name).cast(kind)
        return table.set_column(table.schema.get_field_index(name), name, column)

    return change


def overwritten(path: Path, place: slice) -> None:
    content = bytearray(path.read_bytes())
    content[place] = bytes(len(content[place]))
    path.write_bytes(content)


def missing_column(path: Path) -> str:
    return f"{parquet(path, lambda t: t.drop_columns('number'))}: the column 'number' is missing"


def wrong_type(path: Path) -> str:
    file = parquet(path, of_type("position", pa.string()))
    return f"{file}: the column 'position' is of type string, not an integer"


def negative_position(path: Path) -> str:
    file = parquet(path, value("position", 3, -1))
    return f"{file}, row 4: not an event: position must be from 0 to 9223372036854775807"


def unknown_kind(path: Path) -> str:
    file = parquet(path, value("kind", 0, "jump"))
    return f"{file}, row 1: not an event: there is no kind 'jump', only send, receive, deliver, "


def two_at_one_position(path: Path) -> str:
    parquet(path, value("position", 2, 1))
    return "run 'b' has two events of process 0 at position 1"


def damaged_footer(path: Path) -> str:
    file = parquet(path, lambda table: table)
    overwritten(file, slice(-12, None))
    return f"{file}: not a readable Parquet file: "


def damaged_inside(path: Path) -> str:
    file = parquet(path, lambda table: table)
    overwritten(file, slice(4, 60))
    return f"{file}: not a readable Parquet file"


def broken_line(path: Path) -> str:
    write(path, RUNS)
    with (path / "events.jsonl").open("ab") as lines:
        lines.write(b'{"run":"b","proc')
    return f"{path / 'events.jsonl'}, line 9: not an event: "


def unknown_kind_in_a_line(path: Path) -> str:
    write(path, RUNS)
    with (path / "events.jsonl").open("ab") as lines:
        lines.write(b'{"run":"b","process":0,"position":3,"kind":"it\'s"}\n')
    where = f"{path / 'events.jsonl'}, line 9"
    return f'{where}: not an event: there is no kind "it\'s", only send, receive, deliver, '


def wrong_line(path: Path) -> str:
    write(path, RUNS)
    with (path / "events.jsonl").open("ab") as lines:
        lines.write(b'{"run":"b","process":0,"position":"three","kind":"join"}\n')
    return f"{path / 'events.jsonl'}, line 9: not an event: "


# Whether the run is known that lost something; if it is not, it may be any.
BAD_INPUT = [
    (missing_column, False),
    (wrong_type, False),
    (negative_position, True),
    (unknown_kind, True),
    (two_at_one_position, True),
    (damaged_footer, False),
    (damaged_inside, False),
    (broken_line, False),
    (wrong_line, True),
    (unknown_kind_in_a_line, True),
]


@pytest.mark.parametrize("where", [[], ["--here"]], ids=["on Spark", "here"])
@pytest.mark.parametrize(
    ("spoil", "known"), BAD_INPUT, ids=lambda one: getattr(one, "__name__", "")
)
def test_bad_input_is_refused_or_counted_and_left_out(
    spoil: Callable[[Path], str],
    known: bool,
    where: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "trace"
    words = spoil(path)
    assert verify(path, "--json", *where) == 2
    done = capsys.readouterr()
    assert done.out == ""
    [_, sentence] = without_progress(done.err)
    assert words in sentence
    assert ". " not in sentence
    assert sentence.endswith("; --skip-bad-rows leaves out what cannot be used")

    code = verify(path, "--json", "--skip-bad-rows", *where)
    done = capsys.readouterr()
    said = json.loads(done.out)
    assert said["skipped"] == 1
    [_, counted, place] = without_progress(done.err)
    assert counted.startswith("Left out as unusable: 1 row or file. The verdicts cover the rest")
    assert words in place
    verdicts = {(one["run"], one["property"]): one["verdict"] for one in said["verdicts"]}
    assert verdicts["a", "agreement"] == ("violated" if known else "unknown")
    torn = {verdict for (name, _), verdict in verdicts.items() if name == "b"}
    assert torn == ({"holds", "unknown"} if known else torn - {"violated"})
    assert code == (1 if known else 2)


def test_an_empty_directory_is_an_error_always(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for flags in ((), ("--skip-bad-rows",)):
        assert verify(tmp_path, *flags) == 2
        assert capsys.readouterr().err == (
            f"ordercast verify: {tmp_path}: not a trace: it has neither events.jsonl nor "
            "events/*.parquet in it, and no logs of members\n"
        )


def test_nothing_left_to_judge_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "events.parquet"
    file.write_bytes(b"neither this nor that")
    assert verify(file, "--skip-bad-rows") == 2
    assert f"nothing of {file} can be used: {file}: not a readable" in capsys.readouterr().err
    words = damaged_inside(tmp_path / "trace")
    assert verify(tmp_path / "trace" / "events" / "b.parquet", "--here") == 2
    assert capsys.readouterr().err.endswith(f"{words}\n")


def test_places_of_bad_rows_are_few(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "t", RUNS[:1])
    with (path / "events.jsonl").open("ab") as lines:
        lines.write(b"[]\n" * 8)
    verify(path, "--skip-bad-rows")
    said = capsys.readouterr().out.splitlines()
    [counted] = [index for index, line in enumerate(said) if line.startswith("Left out")]
    assert "8 rows or files" in said[counted]
    assert [line.split(":")[0].split()[-1] for line in said[counted + 1 : -1]] == list("56789")
    assert said[-1] == "  … and 3 more"


def fleet(count: int) -> list[Run]:
    """Every tenth run breaks its promise."""
    return [
        run(
            f"run {n:02}",
            "s1 s2 d0:1 d0:2",
            "d0:2 d0:1" if n % 10 == 3 else "d0:1 d0:2",
            order="fifo",
        )
        for n in range(count)
    ]


def test_many_runs_are_summed_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "t", fleet(80))
    assert verify(path) == 1
    said = capsys.readouterr().out
    rows = [line.split("│") for line in said.splitlines() if line.startswith("│")]
    table = {cells[1].strip(): [cell.strip() for cell in cells[2:-1]] for cells in rows}
    assert len(table) == 11
    assert table["no_duplication"] == ["80", "0", "0", "320", "0"]
    assert table["fifo"] == ["72", "8", "0", "320", "8"]
    told = [line for line in said.splitlines() if ": fifo ✘ violated: " in line]
    assert [line.split(":")[0] for line in told] == [f"run {n}3" for n in ("0", *"1234")]
    assert "delivered 0:2 before 0:1" in told[0]
    assert "… and 3 more (all of them with --json)" in said
    assert "Order held: async in every one of 80 runs. What was promised: ✘ violated." in said
    assert len(said.splitlines()) < 30


def test_json_is_that_of_a_judgement(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "t", fleet(5))
    verify(path, "--json")
    said = capsys.readouterr().out
    assert said == json.dumps(pipeline.judge(path).to_json()) + "\n"


def test_json_tells_what_was_promised(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run that is all right may have verdicts that are not, on what nobody promised."""
    path = write(tmp_path / "t", fleet(5))
    for order, outcome in ("fifo", "violated"), ("async", "holds"):
        code = verify(path, "--json", "--here", "--order", order)
        said = json.loads(capsys.readouterr().out)
        assert (said["outcome"], code) == (outcome, int(outcome == "violated"))
        promised = {one["property"] for one in said["verdicts"] if one["promised"]}
        assert promised == set(properties_of_order(order))
        assert said["outcome"] == worst(o["verdict"] for o in said["verdicts"] if o["promised"])


def test_without_java_it_is_judged_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "t", fleet(5))
    assert verify(path, "--json") == 1
    said = capsys.readouterr().out
    done = subprocess.run(
        [sys.executable, "-m", "ordercast", "verify", str(path), "--json", "--here"],
        env={"PATH": "/nonexistent", "JAVA_HOME": "/nonexistent"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, said)
    monkeypatch.setattr(pipeline, "HERE_MOST", 3)
    assert verify(path, "--here") == 2
    assert "are judged in one process: judge it on Spark" in capsys.readouterr().err


def test_only_some_properties(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "t", fleet(5))
    assert verify(path, "--only", "fifo,no_duplication", "--json") == 1
    found = json.loads(capsys.readouterr().out)["verdicts"]
    assert [one["property"] for one in found[:2]] == ["no_duplication", "fifo"]
    assert len(found) == 10
    assert verify(path, "--only", "no_duplication") == 0
    said = capsys.readouterr().out
    assert "What was asked for: ✔ holds." in said
    assert "Order held" not in said
    assert verify(path, "--only", "synchronous") == 1  # whatever was promised
    assert "What was asked for: ✘ violated." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ([], 1),
        (["--order", "fifo"], 0),
        (["--order", "async"], 0),
        (["--order", "causal"], 1),
        (["--only", "validity"], 2),  # p0 owes itself a delivery, and may not be at its end
        (["--only", "fifo"], 0),
        (["--quiesced", "--order", "fifo"], 1),
    ],
)
def test_what_may_still_come_is_not_held_against_an_order_that_is_asked_for(
    arguments: list[str], code: int, tmp_path: Path
) -> None:
    chat = run("chat", "s1", "d0:1 s1 d1:1", "d1:1 d0:1").events
    file = tmp_path / "events.jsonl"
    file.write_bytes(b"".join(map(encode_event, chat)))
    assert verify(file, "--here", *arguments) == code


@pytest.mark.parametrize(
    ("line", "arguments", "code"),
    [
        (b'{"run":"r","processes":["a","b"]}', [], 2),
        (b'{"run":"r","processes":["a","b"]}', ["--quiesced"], 1),
        (b'{"run":"r","processes":["a","b"],"quiesced":null}', ["--quiesced"], 1),
        (b'{"run":"r","processes":["a","b"],"quiesced":false}', ["--quiesced"], 2),
        (b'\xef\xbb\xbf{"run":"r","processes":["a","b"],"quiesced":true}', [], 1),
    ],
)
def test_a_manifest_that_does_not_say_whether_a_run_came_to_rest(
    line: bytes, arguments: list[str], code: int, tmp_path: Path
) -> None:
    rows = b"".join(map(encode_event, run("r", "s1 d0:1", "join").events))
    (tmp_path / "events.jsonl").write_bytes(b"\xef\xbb\xbf" + rows)
    (tmp_path / "manifest.jsonl").write_bytes(line)
    assert verify(tmp_path, "--here", *arguments) == code


def test_a_manifest_that_is_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "t", RUNS)
    (path / "manifest.jsonl").unlink()
    (path / "manifest.jsonl").symlink_to(tmp_path / "nowhere")
    assert verify(path, "--here") == 2
    assert "manifest.jsonl: not a file" in capsys.readouterr().err


def test_a_column_that_is_there_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parquet(tmp_path / "t", lambda table: table.append_column("run", table.column("run")))
    assert verify(tmp_path / "t", "--here") == 2
    assert "b.parquet: there are two columns 'run'" in capsys.readouterr().err


def test_a_bug_of_ours_is_no_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stumble(*_: object, **__: object) -> None:
        raise KeyError("what nobody thought of")

    monkeypatch.setattr("ordercast.pipeline.examine", stumble)
    assert verify(write(tmp_path / "t", RUNS), "--here") == 2
    assert "ordercast verify: this is a bug of ordercast" in capsys.readouterr().err


@pytest.mark.parametrize("allowed", [None, 2**31])
def test_too_little_memory_is_no_bug_of_ours(
    allowed: int | None,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def starve(*_: object, **__: object) -> None:
        raise MemoryError("Unable to allocate 20.6 MiB for an array")

    limit = resource.RLIM_INFINITY if allowed is None else allowed
    monkeypatch.setattr("ordercast.pipeline.examine", starve)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, limit))
    assert verify(write(tmp_path / "t", RUNS), "--here") == 2
    told = capsys.readouterr().err
    assert "ordercast verify: there is not enough memory" in told
    assert "Traceback" not in told
    assert ("ulimit" in told) == ("a process may have 2.0 GiB" in told) == (allowed is not None)


def test_too_little_memory_of_a_worker_is_no_bug_of_ours(
    spark: SparkSession,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Spark tells of it as of an error of its own; another one of a worker's still is a bug."""

    def starve(batches: Iterator[Any]) -> Iterator[Any]:
        np.empty(1 << 46, np.int8)
        yield from batches

    def stumble(batches: Iterator[Any]) -> Iterator[Any]:
        raise KeyError("a MemoryError that nobody had")
        yield from batches

    trace = write(tmp_path / "t", RUNS)
    for work, sentence in ((starve, "there is not enough memory"), (stumble, "this is a bug")):

        def judge(*_: object, work: Any = work, **__: object) -> None:
            spark.range(1).mapInArrow(work, "id long").collect()

        monkeypatch.setattr("ordercast.pipeline.examine", judge)
        assert verify(trace, "--here") == 2
        told = capsys.readouterr().err
        assert f"ordercast verify: {sentence}" in told
        assert ("Traceback" in told) == (work is stumble)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--only", "fifo,best"], "there is no property 'best': choose from no_duplication, no_"),
        (["--here", "--output", "x"], "--here does without Spark: leave out --output, --master"),
        (["--only", "fifo", "--order", "causal"], "cannot be told without judging causal"),
        (["--only", "fifo", "--order", "total"], "without judging total_acyclic or total_gap_free"),
        (["--only", "fifo", "--order", "async"], "judging agreement or no_creation or no_dup"),
        (["--output", "{trace}"], "events.jsonl would be written into what is read, "),
        (["--again"], "--again is about the results in a directory: give it with --output"),
        # These events are not in that format, which would be told first if they were imported.
        (["--format", "broadcast", "--only", "nonsense"], "there is no property 'nonsense'"),
        (["--format", "broadcast", "--order", "nonsense"], "'nonsense'"),
        (["--format", "broadcast", "--conf", "nonsense"], "--conf 'nonsense' is not of the form"),
    ],
)
def test_what_cannot_be_is_told_before_anything_is_done(
    arguments: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "events.jsonl"
    file.write_bytes(b"".join(map(encode_event, RUNS[0].events)))
    assert verify(file, *(word.replace("{trace}", str(file)) for word in arguments)) == 2
    done = capsys.readouterr()
    assert (done.out, done.err.count("\n")) == ("", 1)
    assert sentence in done.err


def test_tables_are_written_and_grow(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = write(tmp_path / "t", RUNS[:1], "parquet"), tmp_path / "out"
    assert verify(path, "--output", out) == 1
    assert capsys.readouterr().out.endswith(f"tables: {out}\n")
    pq.write_table(to_table(RUNS[1].events), path / "events" / "b.parquet")
    with (path / "manifest.jsonl").open("ab") as lines:
        lines.write(RUNS[1].manifest.to_json() + b"\n")
    assert verify(path, "--output", out, "--json") == 1
    grown = capsys.readouterr().out
    assert {file.name for file in out.glob("costs/*")} == {"part-0001.parquet", "part-0002.parquet"}
    assert verify(path, "--json") == 1
    assert capsys.readouterr().out == grown


def test_another_systems_log_is_judged_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Though the trace that is made of it has another name each time."""
    log = tmp_path / "chat.log"
    log.write_text('a {"a":1}\nsend m1\nb {"b":1, "a":1}\nreceive m1\n')
    told = []
    for _ in range(2):
        verify(log, "--format", "shiviz", "--output", tmp_path / "out", "--json")
        told.append(json.loads(capsys.readouterr().out))
    assert told[0] == told[1]
    assert [file.name for file in (tmp_path / "out" / "verdicts").iterdir()] == [
        "part-0001.parquet"
    ]
