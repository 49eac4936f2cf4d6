"""Other systems' logs into traces. One file per format, all with the same small interface: a job
in, an iterator of events per process out, and a report beside it. `FORMATS` lists them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from ordercast.errors import TraceError, UsageError
from ordercast.trace.directory import Format
from ordercast.trace.importers.base import Importer, Job, Options, Report, natural
from ordercast.trace.importers.broadcast import BROADCAST
from ordercast.trace.importers.dslab import DSLAB
from ordercast.trace.importers.jepsen import JEPSEN
from ordercast.trace.importers.lines import refuse_packed
from ordercast.trace.importers.maelstrom import MAELSTROM
from ordercast.trace.importers.otlp import OTLP
from ordercast.trace.importers.progress import Progress
from ordercast.trace.importers.shiviz import SHIVIZ
from ordercast.trace.importers.sink import TraceSink, best_format
from ordercast.trace.importers.store import full_disks_told
from ordercast.trace.importers.table import TABLE
from ordercast.trace.jsonl import MARK

__all__ = ["FORMATS", "NOTHING", "Imported", "Options", "detect", "import_trace", "source_files"]

FORMATS: dict[str, Importer] = {
    importer.name: importer
    for importer in (SHIVIZ, DSLAB, BROADCAST, OTLP, JEPSEN, MAELSTROM, TABLE)
}
NOTHING = "nothing in it is an event that can be judged"
HEAD_LINES = 8
HEAD_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Imported:
    format: str
    events: int
    report: Report


def source_files(sources: Iterable[Path]) -> tuple[Path, ...]:
    """The files that are meant: those named, and all those in the directories named."""
    files: list[Path] = []
    for source in sources:
        if source.is_file():
            files.append(source)
            continue
        if not source.is_dir():
            raise TraceError(f"{source}: {_what_else(source)}")
        found = [path for path in source.iterdir() if path.is_file() and path.name[0] != "."]
        if not found:
            raise TraceError(f"{source}: there is no file in it")
        files += sorted(found, key=lambda path: natural(path.name))
    return tuple(files)


def _what_else(source: Path) -> str:
    if not source.exists():
        return "there is no such file or directory"
    # Most formats are read more than once: to guess the format, and then its layout.
    what = "a pipe" if source.is_fifo() else "neither a file nor a directory"
    return f"it is {what}: save the log to a file first"


def detect(file: Path, options: Options | None = None) -> str:
    """The only format that a file looks like. Whoever names columns has a table."""
    if options is not None and (options.map or options.preset):
        return TABLE.name
    with file.open("rb") as source:
        start = source.read(HEAD_BYTES).removeprefix(MARK)
    refuse_packed(file, start)
    text = start.decode(errors="replace")
    head = [line for line in text.splitlines() if line.strip()][:HEAD_LINES]
    found = [name for name, importer in FORMATS.items() if importer.looks(file, head)]
    if len(found) == 1:
        return found[0]
    like = f"could be {' or '.join(found)}" if found else "looks like no format that I know"
    raise UsageError(
        f"{file}: it {like}: say with --format which of {', '.join(FORMATS)} it is, or, if it has "
        "a row per event, name its columns with --map process=…,kind=…,message=…"
    )


def import_trace(
    sources: Iterable[Path],
    trace: Path,
    *,
    format: str = "auto",
    options: Options | None = None,
    write: Format | None = None,
    advance: Callable[[int], None] = lambda _: None,
) -> Imported:
    """Write what the sources say as a trace directory, which appears when it is whole."""
    options = options or Options()
    files = source_files(list(sources))
    name = detect(files[0], options) if format == "auto" else format
    report = Report(skip_bad_rows=options.skip_bad_rows)
    sink = TraceSink(trace, write or best_format())
    try:
        progress = Progress(sum(file.stat().st_size for file in files), advance)
        read = advance if FORMATS[name].as_it_comes else progress.read
        job = Job(files, options, report, sink.scratch, read, progress.arranged, sink.write_ids)
        # Whatever goes wrong meanwhile, what the logs are read from is closed.
        with full_disks_told(sink.scratch), closing(FORMATS[name].read(job)) as logs:
            events = sink.write(chain.from_iterable(log.events for log in logs))
        if not events:
            raise TraceError(f"{files[0]}: {NOTHING}")
        sink.finish(report.manifests(name, options, files))
    except RecursionError:
        raise TraceError(f"{files[0]}: something in it is nested too deeply") from None
    finally:
        sink.abandon()
    return Imported(name, events, report)
