"""One file at a time, for tasks on many machines: nothing is sorted, joined or remembered.

That works where each row can stand alone: for `broadcast` logs, and for tables whose rows have
position, origin and number. Whoever starts the tasks says which processes there are.

    names = ["1", "2", "3"]
    convert = partial(import_file, trace=out, format="broadcast", run="r", processes=names)
    events = spark.sparkContext.parallelize(files, len(files)).map(convert).sum()
    write_manifest(out, Manifest("r", tuple(names), quiesced=True))
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ordercast.errors import TraceError, UsageError
from ordercast.trace.directory import MANIFEST
from ordercast.trace.event import Event
from ordercast.trace.importers.base import TOO_LARGE, Job, Options, Report, compiled
from ordercast.trace.importers.broadcast import events_of, process_name, steps
from ordercast.trace.importers.sink import write_log
from ordercast.trace.importers.table import records_of
from ordercast.trace.manifest import Manifest

__all__ = ["file_events", "import_file", "write_manifest"]


def import_file(
    file: str | Path,
    trace: str | Path,
    *,
    format: str,
    run: str,
    processes: Sequence[str],
    options: Options | None = None,
) -> int:
    """Write the rows of one file as one Parquet file of the trace; how many there are."""
    target = Path(trace) / "events" / f"{Path(file).name}.parquet"
    target.parent.mkdir(parents=True, exist_ok=True)
    rows = file_events(file, format=format, run=run, processes=processes, options=options)
    return write_log(rows, target)


def file_events(
    file: str | Path,
    *,
    format: str,
    run: str,
    processes: Sequence[str],
    options: Options | None = None,
) -> Iterator[Event]:
    """The rows of one file, in the order of the file. `processes`: all names, in index order."""
    source, chosen = Path(file), options or Options()
    job = Job((source,), chosen, Report(), source.parent)
    if format == "broadcast":
        yield from _broadcast(job, source, run, list(processes))
    elif format == "table":
        yield from _table(job, source, run, processes)
    else:
        raise UsageError(f"{format} logs cannot be read file by file: use ordercast import")


def _broadcast(job: Job, file: Path, run: str, names: list[str]) -> Iterator[Event]:
    wanted = job.options.process_pattern
    pattern = compiled(wanted, "--process-pattern", needs=["process"]) if wanted else None
    name, known = process_name(file, pattern), len(names)
    process = _index(names, name, str(file))
    crashed = name in job.options.crashed
    yield from events_of(steps(job, file, name), run, process, names, crashed=crashed)
    if len(names) > known:
        raise TraceError(f"{file}: it delivers from {names[known]}, which is none of the processes")


def _table(job: Job, file: Path, run: str, names: Sequence[str]) -> Iterator[Event]:
    for record in records_of(job, file):
        if record.place is None or (record.message is not None and record.number is None):
            raise UsageError(f"{file}: to be read alone, a table needs position, origin and number")
        if not record.fits:
            raise TraceError(f"{record.where}: {TOO_LARGE}")
        to, where = record.destinations, str(record.where)
        yield Event(
            record.run if "run" in job.options.map else run,
            _index(names, record.process or "", where),
            record.place,
            record.kind,
            None if record.origin is None else _index(names, record.origin, where),
            record.number,
            None if to is None else tuple(sorted(_index(names, one, where) for one in to)),
            record.time_us,
            record.bytes,
        )


def _index(names: Sequence[str], name: str, where: str) -> int:
    try:
        return names.index(name)
    except ValueError:
        raise TraceError(f"{where}: {name} is none of the processes") from None


def write_manifest(trace: str | Path, *manifests: Manifest) -> None:
    lines = b"".join(manifest.to_json() + b"\n" for manifest in manifests)
    (Path(trace) / MANIFEST).write_bytes(lines)
