"""Whether the order held, right after a story."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ordercast.errors import SetupError, TraceError
from ordercast.oracle import judge
from ordercast.pipeline.installed import require_kernels
from ordercast.trace import Event, Manifest, Trace
from ordercast.trace.spans import log_files, read_log, rows_of
from ordercast.trace.verdicts import PROPERTIES, Verdict, promised

__all__ = ["check"]

DEFINED_MAX = 500
"""Events: twice as many take the definitions eight times as long."""


def check(trace: Path | str, *, rest: bool = False, crashed: Collection[str] = ()) -> list[Verdict]:
    """The verdicts on the logs that members wrote (`join(trace=...)`). AssertionError if a promise
    was broken.

    rest      the group came to rest, so everything that has to arrive has arrived
    crashed   the names of members that were killed and did not come back: nobody owes them anything
    """
    directory = Path(trace)
    files = log_files(directory)
    if not files:
        raise TraceError(f"{directory}: no member has written a log here: join with trace=")
    verdicts: list[Verdict] = []
    for one in _traces(files, crashed):
        manifest = replace(one.manifest, quiesced=rest, silent=False)
        found = _judged(replace(one, manifest=manifest))
        verdicts += found
        promises = promised(one.manifest, PROPERTIES)
        for verdict in found:
            if verdict.verdict == "violated" and verdict.property in promises:
                assert verdict.witness is not None
                raise AssertionError(f"{verdict.property} is violated: {verdict.witness.sentence}")
    return verdicts


def _judged(run: Trace) -> Sequence[Verdict]:
    """By the definitions; or by the kernels, which say the same, if they are installed and the
    definitions would take seconds."""
    if len(run.events) <= DEFINED_MAX:
        return judge(run)
    try:
        require_kernels()
    except SetupError:
        return judge(run)
    from ordercast.pipeline.here import judge_run  # takes what was just required

    return judge_run(run)


def _traces(files: Iterable[Path], crashed: Collection[str]) -> Iterator[Trace]:
    """One for each group that wrote there."""
    manifests: dict[str, Manifest] = {}
    events: dict[str, list[Event]] = {}
    for file in files:
        head, spans = read_log(file)
        if head.manifest is not None:
            manifests[head.run] = Manifest.from_json(head.manifest, where=str(file))
        position = head.position
        for span in spans:
            more = rows_of(span, run=head.run, process=head.process, position=position)
            events.setdefault(head.run, []).extend(more)
            position += span.count
    for run, manifest in manifests.items():
        rows = events.get(run, [])
        for process, name in enumerate(manifest.processes):
            if name in crashed:  # which it could not write down itself
                position = sum(row.process == process for row in rows)
                rows.append(Event(run, process, position, "crash"))
        yield Trace(manifest, tuple(range(len(manifest.processes))), tuple(rows))
