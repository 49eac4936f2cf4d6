"""The data pipeline on Spark: takes a trace of any size and says which orders held.

The only folder that imports pyspark, and only once something is judged: who never judges need not
have it. It rebuilds what happened from the events alone and shares no code with the protocols.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ordercast.errors import SetupError, TraceError, UnusableError, UsageError
from ordercast.pipeline.installed import require_kernels, require_pyspark
from ordercast.pipeline.progress import Tell, followed
from ordercast.pipeline.session import open_session, session
from ordercast.pipeline.settings import settings_for
from ordercast.trace.directory import event_files
from ordercast.trace.gather import gathered, home_of
from ordercast.trace.verdicts import (
    LIVENESS,
    PROPERTIES,
    Judgement,
    demanded_by,
    properties_named,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from ordercast.pipeline.findings import Findings
    from ordercast.pipeline.here import Here
    from ordercast.pipeline.options import Options
    from ordercast.pipeline.reading import read_log
    from ordercast.pipeline.results import Results
    from ordercast.pipeline.sorting import causal_sort
    from ordercast.pipeline.source import Source
    from ordercast.pipeline.tables import Stored

__all__ = [
    "causal_sort",
    "examine",
    "judge",
    "open_session",
    "read_log",
    "read_results",
    "session",
    "verify",
]

HERE_MOST = 10_000_000
"""Events: some 150 bytes each."""

R = TypeVar("R", "Results", "Here")

_LATER = {
    "causal_sort": "ordercast.pipeline.sorting",
    "read_log": "ordercast.pipeline.reading",
}
"""What cannot be imported without pyspark, and where it is."""


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        require_pyspark(name)
    except SetupError as error:
        return _refusing(name, str(error))
    return getattr(import_module(_LATER[name]), name)


def _refusing(name: str, sentence: str) -> Callable[..., Any]:
    """In place of what cannot be imported, for whoever only looks at it."""

    def refuse(*_: object, **__: object) -> Any:
        raise SetupError(sentence)

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = sentence
    return refuse


def __dir__() -> list[str]:
    return sorted(__all__)


def judge(
    path: Path,
    *,
    master: str | None = None,
    config: Mapping[str, str] | None = None,
    verbose: bool = False,
    quiesced: bool = False,
    order: str | None = None,
    properties: Collection[str] = PROPERTIES,
    skip: bool = False,
    spark: SparkSession | None = None,
    here: bool = False,
) -> Judgement:
    """The verdicts on a trace on disk, each as an object: for some thousand runs. See `examine`."""
    return examine(
        path, master=master, config=config, verbose=verbose, quiesced=quiesced, order=order,
        properties=properties, skip=skip, spark=spark, here=here,
    ).judgement()  # fmt: skip


def examine(
    path: Path,
    *,
    master: str | None = None,
    config: Mapping[str, str] | None = None,
    verbose: bool = False,
    quiesced: bool = False,
    order: str | None = None,
    properties: Collection[str] = PROPERTIES,
    skip: bool = False,
    output: Path | None = None,
    again: bool = False,
    spark: SparkSession | None = None,
    here: bool = False,
    gather: bool = True,
    made_of: Path | None = None,
    tell: Tell | None = None,
    note: Callable[[str], None] | None = None,
) -> Findings:
    """The verdicts on a trace on disk, in `spark` or in a session of its own. Logs that members
    wrote are put together before (`gather`), as `ordercast verify` does.

    `quiesced` says that runs without a manifest came to rest, or those whose manifests do not say;
    `order`, or else the `properties` if they are chosen, is what must hold, whatever the manifests
    promise; with `skip`, rows that cannot be used are counted and left out. The
    result tables go to the directory `output`; runs that are there already are judged only `again`.
    They are known by where they are, or by the logs that a trace was `made_of` for this once.
    `tell` hears how many tasks of how many are done, and `note` what else is worth a line.

    With `here`, the trace is judged in the memory of this process, without Spark: what the same
    kernels say of a small trace in a moment, as a test of your own wants it. That takes less to be
    installed: `ordercast[judge]`.
    """
    (require_kernels if here else require_pyspark)()
    from ordercast.pipeline.options import Options
    from ordercast.pipeline.source import inspect

    path = Path(path)
    if here and output is not None:
        raise UsageError("result tables are written by Spark: judge here, or with an output")
    if here and (master is not None or config or spark is not None):
        raise UsageError("here, there is no Spark: leave out master, config and spark")
    if gather:
        path = gathered(path)
    # Mistakes that need no Spark to be seen are told before it starts.
    options = Options(
        properties_named(properties),
        *(quiesced, skip),
        demanded=demanded_by(order, properties),
        excused=() if order is None else LIVENESS,
    )

    @contextmanager
    def opened(source: Source) -> Iterator[SparkSession]:
        # Verdicts are found by Python's workers; what goes to `output` also has Spark's own sums.
        settings = settings_for(source.size, by_python=output is None) | dict(config or {})
        own = session(master=master, config=settings, verbose=verbose)
        with nullcontext(spark) if spark is not None else own as running, followed(running, tell):
            yield running

    if output is not None:
        made_of = made_of or home_of(path)
        return _add_to(output, path, made_of, options, opened, again=again)
    source = inspect(path, skip=skip)
    options = replace(options, listed=False)
    if here:
        return _find(_in_memory(source, note), source, options)
    with opened(source) as running:
        return _find(_on(running), source, options)


def _add_to(
    output: Path,
    path: Path,
    made_of: Path | None,
    options: Options,
    opened: Callable[[Source], AbstractContextManager[SparkSession]],
    *,
    again: bool,
) -> Findings:
    """Judges what the directory of result tables does not have yet; returns all that it has."""
    from ordercast.pipeline.tables import open_directory

    event_files(path)  # or there is nothing to make a directory for
    with open_directory(output, options, again=again) as directory:
        source = directory.unjudged(path, made_of=made_of)
        if source.files or source.unreadable or len(source.described):
            directory.require_writable()
            with opened(source) as running:
                torn = directory.record.torn
                results, under = _judged(_on(running), source, replace(options, torn=torn))
                try:
                    if not directory.record.parts:
                        _require_events(path, results)
                    directory.add(results, source, torn=under.torn)
                finally:
                    results.release()
        elif not directory.record.parts:
            raise TraceError(f"{path}: there is no event in it")
        return directory.findings()


def verify(
    spark: SparkSession,
    events: DataFrame,
    runs: DataFrame,
    *,
    properties: Collection[str] = PROPERTIES,
    skip: bool = False,
) -> Results:
    """The result tables of a trace in DataFrames: `verify(…).table("verdicts")`.

    events   run, process, position, kind, origin, number; and, if there are any, destinations,
             time_us, bytes, control_bytes
    runs     run, one row each; and, if they are known, names (of the processes), size (how many
             there are), quiesced (came to rest), complete (the log has no holes), promises (names
             of properties). A run without a row is judged as one without a manifest.

    A row that cannot be used is a `TraceError`; with `skip` it is left out, and is in the table
    `flaws`. Call `release` on what comes back when done.
    """
    require_pyspark()
    from ordercast.pipeline.engine import judge_frame
    from ordercast.pipeline.frames import check_events, check_runs, refuse_flaws
    from ordercast.pipeline.options import Options

    options = Options(properties_named(properties), False, skip)
    check_events(events)
    check_runs(runs, skip=skip)
    results = judge_frame(events, runs, options)
    try:
        if not skip:
            refuse_flaws(results)
    except BaseException:
        results.release()
        raise
    return results


def read_results(spark: SparkSession, directory: Path) -> Stored:
    """The result tables in a directory that `examine` wrote to, as `verify` gives them."""
    require_pyspark("read_results")
    from ordercast.pipeline.tables import Stored

    return Stored(spark, Path(directory))


def _on(spark: SparkSession) -> Callable[[Source, Options], Results]:
    from ordercast.pipeline.engine import judge_source

    return partial(judge_source, spark)


def _in_memory(
    source: Source, note: Callable[[str], None] | None
) -> Callable[[Source, Options], Here]:
    from ordercast.pipeline.here import judge_here
    from ordercast.pipeline.judging import patience

    if source.rows > HERE_MOST:
        raise UsageError(
            f"{source.path} has {source.rows:,} events, and up to {HERE_MOST:,} are judged in one "
            "process: judge it on Spark"
        )
    if note is not None and (words := patience(source.rows)) is not None:
        note(words)
    return judge_here


def _find(judge: Callable[[Source, Options], R], source: Source, options: Options) -> Findings:
    from ordercast.pipeline.findings import Findings

    results, _ = _judged(judge, source, options)
    try:
        _require_events(source.path, results)
        found = Findings.of(*(results.collect(name) for name in ("verdicts", "runs", "flaws")))
        source.require_same()
        return found
    finally:
        results.release()


def _judged(
    judge: Callable[[Source, Options], R], source: Source, options: Options
) -> tuple[R, Options]:
    """The results, to be released, and the options under which they are right."""
    results = judge(source, options)
    try:
        flaws = results.collect("flaws")
        if len(flaws) and not options.skip:
            source.require_same()
            refusal = TraceError if _is_all(flaws, source) else UnusableError
            raise refusal(_first(source.path, flaws))
    except BaseException:
        results.release()
        raise
    if not flaws["run"].null_count or options.torn:
        return results, options
    # What was left out may belong to any run: none is known to be whole.
    results.release()
    return _judged(judge, source, replace(options, torn=True))


def _is_all(flaws: pa.Table, source: Source) -> bool:
    """Is it the only file that cannot be used, as a whole?"""
    [first, *_] = flaws.to_pylist()
    return len(source.files) == 1 and first["file"] is not None and first["row"] is None


def _require_events(path: Path, results: Results | Here) -> None:
    if any(results.collect("runs")["events"].to_numpy()):
        return
    flaws = results.collect("flaws")
    if len(flaws):
        raise TraceError(f"nothing of {path} can be used: {_first(path, flaws)}")
    raise TraceError(f"{path}: there is no event in it")


def _first(path: Path, flaws: pa.Table) -> str:
    """The first flaw in a sentence; those of single rows before those of several."""
    from ordercast.pipeline.findings import PLACES, place

    [flaw] = flaws.sort_by(PLACES).slice(0, 1).to_pylist()
    return place(flaw) if flaw["file"] else f"{path}: {flaw['flaw']}"
