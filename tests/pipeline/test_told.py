"""What a file says of itself saves a pass over it, if it is true; if not, it is not believed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from shutil import copytree
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ordercast.pipeline.conclude import conclude
from ordercast.pipeline.huge import splitting
from ordercast.pipeline.huge.segments import Segment, scan_pieces
from ordercast.pipeline.huge.told import told_segments
from ordercast.pipeline.judging import Judged
from ordercast.pipeline.source import inspect
from ordercast.trace.manifest import Manifest
from ordercast.trace.outline import OUTLINE, decode_outline, encode_outline
from ordercast.trace.parquet import LogWriter
from ordercast.trace.verdicts import PROPERTIES

from .broadcasts import broadcast, each, manifest_of, write
from .spoiling import spoilt

SIZE = 4


@pytest.fixture(scope="module")
def events() -> pa.Table:
    return broadcast(11, steps=800, size=SIZE, crashes=0)


@pytest.fixture(scope="module")
def manifest(events: pa.Table) -> Manifest:
    return manifest_of(events, quiesced=True)


class Judge:
    """Judges a trace, and counts how often it looks at its rows just to see what is there."""

    def __init__(self) -> None:
        self.scans = 0

    def each(self, function: Callable[[Any], Any], those: Sequence[Any], kind: Any, /) -> list[Any]:
        self.scans += kind == list[Segment]
        return each(function, those, kind)

    def __call__(self, path: Path, manifest: Manifest, properties: Sequence[str]) -> Judged:
        source = inspect(path)
        pieces = [group.piece for group in source.groups]
        found = splitting.split(pieces, SIZE, properties, self.each, 4)
        return conclude(manifest, found, properties, source.rows)


def same(a: Judged, b: Judged) -> bool:
    return (
        a.verdicts.equals(b.verdicts)
        and a.seen.equals(b.seen)
        and sorted(map(str, a.violations.to_pylist())) == sorted(map(str, b.violations.to_pylist()))
    )


def test_files_tell_what_a_scan_would_find(tmp_path: Path) -> None:
    """Whatever is wrong with the run. Several processes may lie in one row group."""
    compared = 0
    for seed in range(60):
        rows = broadcast(seed)
        rows = spoilt(rows, Random(seed)) if seed % 3 else rows
        if not len(rows):
            continue
        (tmp_path / str(seed) / "events").mkdir(parents=True)
        path = tmp_path / str(seed) / "events" / "all.parquet"
        with LogWriter(path, group_rows=Random(seed).choice([1, 3, 20, 400])) as writer:
            for begin in range(0, len(rows), 7):
                writer.write(rows.slice(begin, 7))
        pieces = [group.piece for group in inspect(tmp_path / str(seed)).groups]
        members = 1 + max(rows["process"].to_pylist())
        told = told_segments(pieces, members)
        if any(one is not None for one in rows["destinations"].to_pylist()):
            assert told is None
            continue
        assert told is not None
        bare = [msgspec.structs.replace(one.part, told=None) for one in told]
        seen = list(scan_pieces(pieces, members))
        assert [
            msgspec.structs.replace(one, part=part) for one, part in zip(told, bare, strict=True)
        ] == seen
        compared += len(told)
    assert compared > 500


def test_a_healthy_run_is_read_once(tmp_path: Path, events: pa.Table, manifest: Manifest) -> None:
    plain = write(tmp_path / "plain", events, manifest, 40)
    outlined = write(tmp_path / "outlined", events, manifest, 40, outlined=True)
    for properties, scans in ((PROPERTIES, 0), (("no_creation", "causal"), 0), (("fifo",), 1)):
        judge, again = Judge(), Judge()
        assert same(judge(outlined, manifest, properties), again(plain, manifest, properties))
        assert (judge.scans, again.scans) == (scans, 1)


def test_only_causal_order_is_broken(tmp_path: Path) -> None:
    """Then what the files said is proven by the time that this is seen."""
    for seed in range(100):
        rows = broadcast(seed, steps=400, size=SIZE, crashes=0)
        about = manifest_of(rows, quiesced=True)
        plain = Judge()(write(tmp_path / f"{seed}p", rows, about, 30), about, PROPERTIES)
        verdicts = {row["property"]: row["verdict"] for row in plain.verdicts.to_pylist()}
        if (verdicts["fifo"], verdicts["causal"]) == ("holds", "violated"):
            break
    judge = Judge()
    path = write(tmp_path / "outlined", rows, about, 30, outlined=True)
    assert same(judge(path, about, PROPERTIES), plain)
    assert judge.scans == 0


def _edited(path: Path, change: Callable[[list[Any]], object]) -> None:
    """What the file says is changed, and its rows are not."""
    metadata = pq.read_metadata(path).metadata
    told = msgspec.json.decode(encode_outline(decode_outline(metadata[OUTLINE])))
    change(told)
    _rewrite(path, pq.read_table(path), {**metadata, OUTLINE: msgspec.json.encode(told)})


def _rewrite(path: Path, rows: pa.Table, metadata: dict[bytes, bytes]) -> None:
    with pq.ParquetWriter(path, rows.schema) as writer:
        writer.write_table(rows, row_group_size=40)
        writer.add_key_value_metadata({k: v for k, v in metadata.items() if k != b"ARROW:schema"})


def _add(field: int, many: int = 1) -> Callable[[list[Any]], None]:
    def change(told: list[Any]) -> None:
        told[2][0][field] += many

    return change


def _shift(told: list[Any]) -> None:
    """One message fewer in one row group, and one more in the next: that fits together."""
    run = next(run for run in told[2][0][-1] if run[0] == 0)
    after = next(run for run in told[3][0][-1] if run[0] == 0)
    run[2] -= 1
    after[1] -= 1
    told[2][0][6] -= 1
    told[3][0][6] += 1


LIES: dict[str, Callable[[list[Any]], object]] = {
    "process": _add(0),
    "begin": _add(1),
    "end": _add(2),
    "first position": _add(3),
    "last position": _add(4, -1),
    "sent": _add(5),
    "delivered": _add(6),
    "adjacent": _add(7),
    "head": _add(8),
    "tail": _add(9),
    "down": _add(10),
    "a run is missing": lambda told: told[2][0][-1].pop(),
    "a run is shorter": lambda told: told[2][0][-1][0].__setitem__(2, told[2][0][-1][0][2] - 1),
    "as if of another origin": lambda told: told[2][0][-1][0].__setitem__(0, SIZE),
    "far too large": lambda told: told[-1][0][-1][0].__setitem__(2, 2**61),
    "larger than a number": lambda told: told[-1][0][-1][0].__setitem__(2, 2**80),
    "shifted": _shift,
    "a group too few": lambda told: told.pop(),
    "no numbers": lambda told: told.__setitem__(2, "what?"),
}


@pytest.fixture(scope="module")
def honest(
    events: pa.Table, manifest: Manifest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Judged]:
    """Files that tell the truth, also when one of them is written anew; and what is found."""
    path = write(tmp_path_factory.mktemp("told") / "outlined", events, manifest, 40, outlined=True)
    expected = Judge()(path, manifest, PROPERTIES)
    _edited(path / "events" / "1.parquet", lambda told: None)
    judge = Judge()
    assert same(judge(path, manifest, PROPERTIES), expected)
    assert judge.scans == 0
    return path, expected


@pytest.mark.parametrize("lie", LIES)
def test_lies_are_found_out(
    tmp_path: Path, honest: tuple[Path, Judged], manifest: Manifest, lie: str
) -> None:
    source, expected = honest
    path = copytree(source, tmp_path / "outlined")
    _edited(path / "events" / "1.parquet", LIES[lie])
    judge = Judge()
    assert same(judge(path, manifest, PROPERTIES), expected)
    assert judge.scans == 1


def test_rows_that_were_changed_later(tmp_path: Path, events: pa.Table, manifest: Manifest) -> None:
    """Somebody edits a file with a tool that keeps whatever else is in it."""
    path = write(tmp_path / "outlined", events, manifest, 40, outlined=True)
    file = path / "events" / "1.parquet"
    rows = pq.read_table(file)
    kinds, origins = rows["kind"].to_pylist(), rows["origin"].to_pylist()
    first, second = [
        i for i, (k, o) in enumerate(zip(kinds, origins, strict=True)) if (k, o) == ("deliver", 2)
    ][3:5]
    order = list(range(len(rows)))
    order[first], order[second] = order[second], order[first]
    for column in ("origin", "number"):
        at = rows.column_names.index(column)
        rows = rows.set_column(at, rows.field(at), rows[column].take(pa.array(order)))
    _rewrite(file, rows, pq.read_metadata(file).metadata)
    judge = Judge()
    found = judge(path, manifest, PROPERTIES)
    assert judge.scans == 1
    verdicts = {row["property"]: row["verdict"] for row in found.verdicts.to_pylist()}
    assert verdicts["fifo"] == "violated"


def test_destinations_that_were_added_later(
    tmp_path: Path, events: pa.Table, manifest: Manifest
) -> None:
    """The words "for everyone" in a footer are those of the file that it is a copy of."""
    path = write(tmp_path / "outlined", events, manifest, 40, outlined=True)
    file = path / "events" / "0.parquet"
    rows = pq.read_table(file).to_pylist()
    next(row for row in rows if row["kind"] == "send")["destinations"] = [0, 1]
    copied = pa.Table.from_pylist(rows, pq.read_schema(file))
    _rewrite(file, copied, pq.read_metadata(file).metadata)
    judge = Judge()
    found = judge(path, manifest, PROPERTIES)
    verdicts = {row["property"]: row["verdict"] for row in found.verdicts.to_pylist()}
    assert judge.scans == 1
    assert verdicts["no_creation"] == "violated"  # it was delivered to others, too


def test_all_agree_on_far_too_much(tmp_path: Path, events: pa.Table, manifest: Manifest) -> None:
    """Nobody makes room for what cannot be in so few rows."""
    path = write(tmp_path / "outlined", events, manifest, 40, outlined=True)
    expected = Judge()(path, manifest, PROPERTIES)

    def exaggerate(told: list[Any]) -> None:
        for whose in (0, -1) if file.stem == "0" else (0,):
            *_, last = (run for group in told for run in group[0][-1] if run[0] == whose)
            last[2] += 2**40

    for file in (path / "events").iterdir():
        _edited(file, exaggerate)
    assert told_segments([group.piece for group in inspect(path).groups], SIZE) is None
    judge = Judge()
    assert same(judge(path, manifest, PROPERTIES), expected)
    assert judge.scans == 1


def test_rows_that_no_window_has(tmp_path: Path, events: pa.Table, manifest: Manifest) -> None:
    """They have no message, but it counts whether the process had crashed."""
    rows = events.to_pylist()
    last = max(row["position"] for row in rows if row["process"] == 1)
    join = dict.fromkeys(events.column_names) | {"run": "r", "process": 1, "kind": "join"}
    rows += [join | {"position": last + 1 + i} for i in range(80)]
    longer = pa.Table.from_pylist(rows, events.schema)
    path = write(tmp_path / "outlined", longer, manifest, 40, outlined=True)
    expected = Judge()(path, manifest, PROPERTIES)
    _edited(path / "events" / "1.parquet", lambda told: told[-1][0].__setitem__(10, 1))
    judge = Judge()
    assert same(judge(path, manifest, PROPERTIES), expected)
    assert judge.scans == 1
