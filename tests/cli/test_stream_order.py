"""`ordercast stream order` as a user meets it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ordercast.cli import main, parser
from ordercast.cli.stream_files import alone_with

from .test_stream_watch import QUICK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "room string, origin string, number long, after array<string>, text string"


SOURCE = "in [1]"
"""No pattern, whatever Spark makes of such names."""


def write(directory: Path, name: str, *rows: tuple[str, str, int, list[str], str]) -> None:
    directory.mkdir(exist_ok=True)
    names = ("room", "origin", "number", "after", "text")
    lines = [json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows]
    (directory / name).write_text("".join(lines))


def command(directory: Path, *more: str) -> list[str]:
    return [
        *("stream", "order", str(directory / SOURCE), "--group", "room", "--dependencies", "after"),
        *("--output", str(directory / "out"), "--checkpoint", str(directory / "state")),
        *("--buckets", "2", "--write", "json", *more),
    ]


def rows(directory: Path) -> list[tuple[str, int]]:
    """As a reader would that knows nothing of Spark."""
    files = sorted(directory.glob("batch=*/*.json"))
    found = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    return [(row["text"], row.get("position")) for row in found]


def test_a_stream_is_put_in_order_and_goes_on_from_its_checkpoint(
    stateful: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    question = ("r", "a", 1, [], "why?")
    answer = ("r", "b", 1, ["a:1"], "because")
    write(tmp_path / SOURCE, "1.json", answer, answer, ("r", "c", 0, [], "odd"))
    code, done = main(command(tmp_path, "--once")), capsys.readouterr()
    assert code == 0, done.err
    summary = done.out.splitlines()[0]
    assert summary.startswith("3 in, 0 released, 1 held, 1 malformed, 1 duplicate, oldest for ")
    assert summary.endswith(" s: b:1 of r waits for a:1")
    assert "columns, as in the files that are there: after:array<string>,number:" in done.err
    assert rows(tmp_path / "out" / "aside") == [("odd", None)]

    write(tmp_path / SOURCE, "2.json", question, answer)
    # As old as it may be that is moved there, or copied with its time.
    long_ago_s = time.time() - 400 * 86_400
    os.utime(tmp_path / SOURCE / "2.json", (long_ago_s, long_ago_s))
    # On another machine, with other cores, it has as many partitions as it was begun with.
    stateful.conf.set("spark.sql.shuffle.partitions", "3")
    code, done = main(command(tmp_path, "--once", "--json")), capsys.readouterr()
    assert code == 0, done.err
    assert json.loads(done.out) == {
        "rows": 2, "released": 2, "gaps": 0, "late": 0, "expired": 0, "malformed": 0,
        "duplicates": 1, "held": 0, "oldest": None,
    }  # fmt: skip
    assert rows(tmp_path / "out" / "ordered") == [("why?", 0), ("because", 1)]
    lines = (tmp_path / "out" / "progress.jsonl").read_text().splitlines()
    table = [json.loads(line) for line in lines]
    assert [(row["batch"], row["rows"], row["held"]) for row in table] == [(0, 3, 1), (1, 2, 0)]

    # It is refused at once, and not when something new comes.
    (tmp_path / "junk" / "offsets").mkdir(parents=True)
    (tmp_path / "junk" / "offsets" / "0").write_text("something else\n")
    other = stateful.readStream.schema(SCHEMA).json(str(tmp_path / "in*")).writeStream
    other = other.format("noop").option("checkpointLocation", str(tmp_path / "other"))
    other.trigger(availableNow=True).start().awaitTermination()
    for more, sentence in REFUSED.items():
        written = [str(tmp_path / word) if word in PLACES else word for word in more]
        code, done = main(command(tmp_path, "--once", *written)), capsys.readouterr()
        assert (code, done.out) == (2, "")
        assert sentence in done.err.splitlines()[-1]
        assert "Traceback" not in done.err


REFUSED = {
    ("--start", "0"): "order: this checkpoint was made with start = 1, and now start "
    "is 0: go on with what it was made with, or begin with a new checkpoint",
    ("--wait", "1s", "--policy", "release"): "order: this checkpoint was made without a "
    "time to wait, and now there is one: go on as the query was begun, or begin with a new checkp",
    (
        "--checkpoint",
        "other",
        "--output",
        "new",
    ): "other has no state of an order: is it the checkpoint of such a qu",
    ("--checkpoint", "junk", "--output", "new"): "junk is no checkpoint that Spark can go on from",
}
PLACES = ("junk", "other", "new")


def test_it_is_stopped_politely(tmp_path: Path) -> None:
    """By a supervisor's SIGTERM, which reaches Spark as well, maybe before us."""
    write(tmp_path / SOURCE, "1.json", ("r", "a", 2, [], "two"))
    arguments = command(tmp_path, "--schema", SCHEMA, "--wait", "1s", "--policy", "release")
    process = subprocess.Popen(
        [sys.executable, "-m", "ordercast", *arguments, "--master", "local[2]", *QUICK],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        until = time.monotonic() + 200
        while not rows(tmp_path / "out" / "ordered") and process.poll() is None:
            assert time.monotonic() < until
            time.sleep(0.2)
        os.killpg(process.pid, signal.SIGTERM)
        errors = process.communicate(timeout=100)[1]
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, errors
    assert errors.splitlines()[-1] == "stopped: the same command goes on from here"
    assert "Traceback" not in errors


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--once", "--trigger", "2s"], "--once takes what is there now: --trigger is for what"),
        (["--option", "x"], "--option 'x' is not of the form KEY=VALUE"),
        (["--conf", "x"], "--conf 'x' is not of the form KEY=VALUE"),
        (["--trigger", "soon"], "'soon' is not a duration such as 500ms, 30s, 5m, 2h or 1d"),
        (["--wait", "5s"], "a time to wait needs a policy for what has waited that long"),
        (["--policy", "aside"], "the policy 'aside' needs a time to wait, such as 30s"),
        (["--side", "{source}"], "is in the source: choose a place outside of it"),
        (["--output", "{source}/deep/er"], "--output"),
        (["--checkpoint", "{source}"], "--checkpoint"),
    ],
)
def test_mistakes_are_told_before_spark_starts(
    more: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = command(tmp_path)
    Path(words[2]).mkdir()
    more = [word.replace("{source}", words[2]) for word in more]
    assert main([*words, *more]) == 2
    done = capsys.readouterr()
    assert (done.out, done.err.count("\n")) == ("", 1)
    assert sentence in done.err


@pytest.mark.parametrize(
    ("last", "made", "more", "place", "way_out"),
    [
        (None, "out/ordered/batch=0", [], "out/ordered", "--output"),
        (None, "out/aside/batch=12", [], "out/aside", "--output"),
        (None, "late/batch=3", ["--side", "{}/late"], "late", "--side"),
        (2, "out/ordered/batch=3", [], "out/ordered", "--output"),
    ],
)
def test_batches_of_another_checkpoint_stay_apart(
    last: int | None,
    made: str,
    more: list[str],
    place: str,
    way_out: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Or messages would be there twice, and others be gone with the batch that was replaced."""
    words = [*command(tmp_path), *(word.format(tmp_path) for word in more)]
    Path(words[2]).mkdir()
    (tmp_path / made).mkdir(parents=True)
    if last is not None:
        (tmp_path / "state" / "offsets").mkdir(parents=True)
        (tmp_path / "state" / "offsets" / f"{last}").touch()
    assert main(words) == 2
    number = made.rpartition("=")[2]
    assert capsys.readouterr().err == (
        f"ordercast stream order: {tmp_path / place} has a batch {number}, which the checkpoint "
        f"{tmp_path / 'state'} has not come to, so it is of another one, and messages would be "
        "there twice: give --checkpoint the one that it was written with, or "
        f"{way_out} a new directory\n"
    )


def test_there_is_one_order_at_a_time(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="2"):
        parser().parse_args(command(tmp_path, "--fifo"))
    assert "argument --fifo: not allowed with argument --dependencies" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["order", "watch"])
def test_of_two_commands_one_goes_on_from_a_checkpoint(
    verb: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Two would write the same batches. Told before Spark starts."""
    write(tmp_path / SOURCE, "1.json", ("tea", "ann", 1, [], "Which tea?"))
    events = tmp_path / "events.jsonl"
    events.write_text('{"run":"r","process":0,"position":0,"kind":"join"}\n')
    state = tmp_path / "state"
    words = ["stream", "watch", str(events), "--checkpoint", str(state)]
    with alone_with(state):
        assert main(command(tmp_path) if verb == "order" else words) == 2
        assert state.exists(), "it is the other one's"
    assert f"{state}: another command goes on from this checkpoint" in capsys.readouterr().err
    assert not state.exists(), "nothing came of it"


@pytest.mark.parametrize("verb", ["order", "watch"])
def test_a_checkpoint_that_cannot_be_is_told_before_spark_starts(
    verb: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    write(tmp_path / SOURCE, "1.json", ("tea", "ann", 1, [], "Which tea?"))
    events = tmp_path / "events.jsonl"
    events.write_text('{"run":"r","process":0,"position":0,"kind":"join"}\n')
    (tmp_path / "state").symlink_to(events / "state")
    words = ["stream", "watch", str(events), "--checkpoint", str(tmp_path / "state")]
    assert main(command(tmp_path) if verb == "order" else words) == 2
    assert capsys.readouterr().err.endswith(f"{tmp_path / 'state'}: file exists\n")
