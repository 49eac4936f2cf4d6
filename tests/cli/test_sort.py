"""`ordercast sort`: files in, files in causal order out, and what it says of bad input."""

from __future__ import annotations

import csv
import datetime
import json
import random
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ordercast.cli import main

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("spark")

STORY: list[dict[str, Any]] = [
    {"origin": "c", "number": 1, "stamp": {"a": 1, "b": 1}, "text": "thanks"},
    {"origin": "b", "number": 1, "stamp": {"a": 1, "b": 1}, "text": "answer"},
    {"origin": "a", "number": 1, "stamp": {"a": 1}, "text": "question"},
]
TOLD = ["question", "answer", "thanks"]


def lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def texts(directory: Path) -> list[str]:
    """What the files say, read one after the other by name."""
    return [
        json.loads(line)["text"]
        for file in sorted(directory.iterdir())
        for line in file.read_text().splitlines()
    ]


def test_maps_in_json_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = lines(tmp_path / "m.jsonl", STORY)
    out = tmp_path / "sorted"
    arguments = ["sort", str(source), "-o", str(out), "--jsonl", "--rows-per-file", "1"]
    assert main(arguments) == 0
    assert texts(out) == TOLD
    assert [file.name for file in sorted(out.iterdir())] == [
        f"part-0000{i}.jsonl" for i in range(3)
    ]
    shown = capsys.readouterr()
    assert "3 messages in 3 files" in shown.out
    assert "Causal order: holds." in shown.out
    assert "checking what was written" in shown.err


def test_lists_in_csv(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "m.csv"
    rows = ['2,1,"[1, 1, 0]",thanks,7', '1,1,"[1, 1, 0]",answer,07', '0,1,"[1, 0, 0]",question,']
    source.write_text("\n".join(["who,seq,clock,text,zip", *rows]))
    chosen = ["--origin", "who", "--number", "seq", "--stamp", "clock", "--position", "place"]
    assert main(["sort", str(source), "-o", str(tmp_path / "out"), "--json", *chosen]) == 0
    table = pq.read_table(tmp_path / "out")
    assert table["text"].to_pylist() == TOLD
    assert table["place"].to_pylist() == [0, 1, 2]
    assert table["clock"].to_pylist()[1] == [1, 1, 0]
    assert table["who"].to_pylist() == [0, 1, 2]
    assert table["zip"].to_pylist() == [None, "07", "7"]
    summary = json.loads(capsys.readouterr().out)
    assert (summary["messages"], summary["verdict"], summary["late"]) == (3, "holds", 0)


def test_text_in_csv_stays_as_it_is(tmp_path: Path) -> None:
    """Also if it goes on in another line, which looks like a message."""
    rows = [
        ("2", 1, '{"2": 1, "01": 1, "1": 1}', "1e3", 'one\nc,1,{},1,"two"'),
        ("1", 1, '{"01": 1, "1": 1}', "2024-01-02", "  two "),
        ("01", 1, '{"01": 1}', "00123", '5" disk'),
    ]
    with (tmp_path / "m.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("origin", "number", "stamp", "zip", "text"), *rows])
    arguments = ["sort", str(tmp_path / "m.csv"), "-o", str(tmp_path / "out"), "--jsonl"]
    assert main(arguments) == 0
    told = map(json.loads, (tmp_path / "out" / "part-00000.jsonl").read_text().splitlines())
    found = [(row["origin"], row["number"], row["zip"], row["text"]) for row in told]
    assert found == [(one, number, code, text) for one, number, _, code, text in reversed(rows)]


def test_names_mean_what_they_say(tmp_path: Path, spark: SparkSession) -> None:
    """Brackets in paths are no patterns, dots no fields, and case makes a difference."""
    group = {"page.id": "p", "Stamp": 1, "Position": 7}
    rows = [
        {"origin": "Ann", "number": 1, "stamp": {"ann": 1, "Ann": 1}, **group},
        {"origin": "ann", "number": 1, "stamp": {"ann": 1}, **group},
    ]
    for name, content in (("day1", rows[1:]), ("day[1]", rows)):
        (tmp_path / name).mkdir()
        lines(tmp_path / name / "x.jsonl", content)
    out = tmp_path / "o[2]"
    arguments = ["sort", str(tmp_path / "day[1]"), "-o", str(out), "--group", "page.id"]
    assert main([*arguments, "--drop-duplicates"]) == 0
    assert pq.ParquetFile(out / "part-00000.parquet").read().drop_columns("stamp").to_pylist() == [
        {"origin": one, "number": 1, **group, "position": place}
        for place, one in enumerate(("ann", "Ann"))
    ]
    assert spark.conf.get("spark.sql.caseSensitive") == "false"


def test_messages_that_know_nothing(tmp_path: Path) -> None:
    rows = [{"origin": one, "number": 1, "stamp": {}, "text": one} for one in "ba"]
    source = lines(tmp_path / "m.jsonl", rows)
    arguments = ["sort", str(source), "-o", str(tmp_path / "out"), "--jsonl", "--no-check"]
    assert main(arguments) == 0
    assert texts(tmp_path / "out") == ["a", "b"]


DAYS = [datetime.datetime(2026, 11, day) for day in (1, 1, 2)]


@pytest.mark.parametrize("options", [[], ["--jsonl"]], ids=["parquet", "jsonl"])
@pytest.mark.parametrize(
    "group",
    [
        pa.array(DAYS, pa.date32()),
        pa.array(DAYS, pa.timestamp("us")),
        pa.array(DAYS, pa.timestamp("us", "UTC")),
        pa.array(map(Decimal, ("1.50", "1.50", "2.5")), pa.decimal128(9, 2)),
        pa.array([True, True, False]),
    ],
    ids=lambda column: str(column.type),
)
def test_groups_of_any_type_and_maps_by_numbers(
    group: pa.Array, options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stamps = pa.array([[(7, 1)], [(7, 1), (8, 1)], [(8, 1)]], pa.map_(pa.int64(), pa.int64()))
    table = {"origin": [7, 8, 8], "number": [1, 1, 1], "stamp": stamps, "day": group}
    pq.write_table(pa.table(table), tmp_path / "m.parquet")
    arguments = ["sort", str(tmp_path / "m.parquet"), "-o", str(tmp_path / "out"), "--group", "day"]
    assert main([*arguments, *options]) == 0
    assert "Causal order: holds." in capsys.readouterr().out


def test_the_same_messages_give_the_same_bytes(tmp_path: Path) -> None:
    rng = random.Random(4)
    rows = [
        {"origin": i % 3, "number": i // 3 + 1, "stamp": [(i + 2 - o) // 3 for o in range(3)]}
        for i in range(60)
    ]
    found = []
    for files in (1, 4):
        rng.shuffle(rows)
        source = tmp_path / f"in{files}"
        source.mkdir()
        for file in range(files):
            table = pa.Table.from_pylist(rows[file::files])
            pq.write_table(table, source / f"{rng.random()}.parquet")
        out = tmp_path / f"out{files}"
        assert main(["sort", str(source), "-o", str(out), "--rows-per-file", "25"]) == 0
        found.append({file.name: file.read_bytes() for file in out.iterdir()})
    assert found[0] == found[1]
    assert len(found[0]) == 3


def test_a_wrong_stamp_is_told_and_decides_the_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    forgetful = {"origin": "d", "number": 1, "stamp": {"c": 1}, "text": "late"}
    source = lines(tmp_path / "m.jsonl", [*STORY, forgetful])
    assert main(["sort", str(source), "-o", str(tmp_path / "out"), "--jsonl"]) == 1
    told = capsys.readouterr().out
    assert "violated. c:1 comes after d:1, whose stamp knows it already" in told
    assert (tmp_path / "out").is_dir()
    chosen = ["--jsonl", "--no-check"]
    assert main(["sort", str(source), "-o", str(tmp_path / "unchecked"), *chosen]) == 0
    assert "Not checked." in capsys.readouterr().out


def test_a_message_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    again = STORY[1] | {"text": "again", "stamp": dict(reversed(STORY[1]["stamp"].items()))}
    source = lines(tmp_path / "m.jsonl", [*STORY, again])
    out = tmp_path / "out"
    assert main(["sort", str(source), "-o", str(out), "--jsonl"]) == 2
    assert "message b:1 is there more than once" in capsys.readouterr().err
    assert not out.exists()
    assert main(["sort", str(source), "-o", str(out), "--jsonl", "--drop-duplicates"]) == 0
    assert "Dropped as duplicates: 1" in capsys.readouterr().out
    assert texts(out) == TOLD


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"a.jsonl": '{"origin": 1, "number": 1}\n'}, "there is no column 'stamp' for stamp"),
        (
            {"a.jsonl": '{"origin": 0, "number": 1, "stamp": [1]}\n{"ori\n'},
            "a.jsonl, line 2: cannot be read as an object in JSON",
        ),
        (
            {"a.jsonl": '{"origin": 0, "number": 1, "stamp": [1]}\n"text"\n'},
            "a.jsonl, line 2: cannot be read as an object in JSON",
        ),
        ({"a.jsonl": ""}, "there is no row in it"),
        ({"a.csv": "who\x01,what\n1,2\n"}, "for origin: it has 'who\\x01', what"),
        ({"a.csv": "origin,number,stamp\n0,1,1 0\n"}, "neither a list nor an object in JSON"),
        (
            {"a.csv": 'origin,number,stamp\n0,1,"[1]"\n\n0,2,"[2"\n'},
            "a.csv, line 4, column 'stamp': '[2' is not a list of whole numbers, such as [1, 0, 2]",
        ),
        (
            {"a.csv": 'origin,number,stamp,text\n0,1,"[1]",x\n0,2\n'},
            "a.csv, line 3: it has 2 values, and the first line 4",
        ),
        (
            {"a.csv": 'origin,number,stamp\n0,1,"[1]"\n0,2.0,"[2]"\n'},
            "a.csv, line 3, column 'number': '2.0' is not a whole number",
        ),
        (
            {"a.csv": 'origin,number,stamp\na,1,"[1]"\n'},
            "line 2, column 'origin': 'a' is not a whole number, as places in a list are",
        ),
        (
            {"a.jsonl": '\n{"origin": "a", "number": 1, "stamp": {"a": 1, "a": 1}}\n'},
            "a.jsonl, line 2: an object in it has 'a' twice",
        ),
        ({"a.csv": "x,y\n", "b.csv": "y,x\n"}, "b.csv: its columns, or their order, are not those"),
        (
            {
                "a.jsonl": '{"origin": 0, "number": 1, "stamp": [1, 0, 0]}\n',
                "b.jsonl": '{"origin": 0, "number": 2, "stamp": "x"}\n',
            },
            "b.jsonl, line 1, column 'stamp': 'x' is not a list of whole numbers",
        ),
        (
            {
                "a.jsonl": '{"origin": "a", "number": 1, "stamp": {"a": 1}}\n'
                '{"origin": "a", "number": 2, "stamp": {"a": "y"}}\n'
            },
            """line 2, column 'stamp': '{"a":"y"}' is not an object of whole numbers, such as {""",
        ),
        ({"a.csv": "origin,number,stamp\n0,0,[0]\n"}, "numbers count from 1, and its own is 0"),
        ({"a.parquet": "no"}, "a.parquet: not a readable Parquet file"),
        (
            {"a.jsonl": '{"origin": 0, "number": 1, "stamp": [1], "g": {"a": 1}}\n'},
            "the column 'g' cannot tell groups apart",
        ),
        ({"a.txt": "x"}, "messages are in files that end in"),
        ({"a.csv": "x", "b.jsonl": "x"}, "b.jsonl is another kind of file than"),
        ({}, "there is no file in it"),
    ],
)
def test_unusable_input_is_one_sentence(
    files: dict[str, str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for name, text in files.items():
        (source / name).write_text(text)
    grouped = ["--group", "g"] if "'g'" in words else []
    assert main(["sort", str(source), "-o", str(tmp_path / "out"), *grouped]) == 2
    [*_, told] = capsys.readouterr().err.splitlines()
    assert told.startswith("ordercast sort: ")
    assert words in told
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


def test_a_row_of_parquet_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = {"origin": [0, 0, 0], "number": [1, 2, 3], "stamp": ["[1]", None, "[3,"]}
    pq.write_table(pa.table(table), tmp_path / "m.parquet")
    assert main(["sort", str(tmp_path / "m.parquet"), "-o", str(tmp_path / "out")]) == 2
    told = capsys.readouterr().err.splitlines()[-1]
    assert "m.parquet, row 3, column 'stamp': '[3,' is not a list of whole numbers" in told


def test_the_output_must_be_new(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = lines(tmp_path / "m.jsonl", STORY)
    assert main(["sort", str(source), "-o", str(tmp_path)]) == 2
    assert "there is something here already" in capsys.readouterr().err
    assert main(["sort", str(tmp_path / "no"), "-o", str(tmp_path / "out")]) == 2
    assert "there is no such file or directory" in capsys.readouterr().err
    hidden = lines(tmp_path / "_m.jsonl", STORY)
    assert main(["sort", str(hidden), "-o", str(tmp_path / "out")]) == 2
    assert "_m.jsonl: Spark passes over files whose names begin with" in capsys.readouterr().err
    twice = ["--group", "origin"]
    assert main(["sort", str(source), "-o", str(tmp_path / "out"), *twice]) == 2
    assert "'origin' cannot be both group and origin" in capsys.readouterr().err


def test_where_nothing_can_be_written_nothing_is_sorted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = lines(tmp_path / "m.jsonl", STORY)
    assert main(["sort", str(source), "-o", str(source / "sorted")]) == 2
    told = f"ordercast sort: {source}/sorted: cannot be written: File exists\n"
    assert capsys.readouterr().err == told


def test_what_a_killed_sort_has_left_is_removed_by_the_next(tmp_path: Path) -> None:
    source = lines(tmp_path / "m.jsonl", STORY)
    left = tmp_path / ".sorted.999999999"  # more than any process has
    (left / "sorted" / "_temporary").mkdir(parents=True)
    assert main(["sort", str(source), "-o", str(tmp_path / "sorted"), "--jsonl"]) == 0
    assert texts(tmp_path / "sorted") == TOLD
    assert sorted(file.name for file in tmp_path.iterdir()) == ["m.jsonl", "sorted"]
