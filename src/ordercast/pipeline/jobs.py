"""Many pieces of work as one Spark job, with each result at hand as soon as it is there.

Spark itself hands results over when all are done, or one task after the other. Here they travel
in an accumulator, whose updates reach the driver once for each task, when that task has ended.
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ordercast.errors import OrdercastError
from ordercast.pipeline.installed import require_pyspark
from ordercast.pipeline.session import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["run_each"]

Item = TypeVar("Item")
Result = TypeVar("Result")

_LIGHT = {
    # The JVM only hands out tasks: what its second compiler makes of that would not pay off.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    # Spark adds up the sizes of all results of a job; here they are taken away as they come.
    "spark.driver.maxResultSize": "0",
}
_LOOK_S = 0.1


def run_each(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    spark: SparkSession | None = None,
    master: str | None = None,
    config: Mapping[str, str] | None = None,
    verbose: bool = False,
) -> Iterator[Result]:
    """What `function` makes of each item, one task each, in the order in which they finish.

    Runs in `spark` or in a session of its own. Function, items and results must be picklable. An
    `OrdercastError` that the function raises is raised here; whoever stops listening stops the job.
    """
    if not items:
        return
    require_pyspark()
    if spark is not None:
        yield from _run(spark, function, items)
        return
    settings = _LIGHT | dict(config or {})
    with session(master=master, config=settings, verbose=verbose) as opened:
        yield from _run(opened, function, items)


def _run(
    spark: SparkSession, function: Callable[[Item], Result], items: Sequence[Item]
) -> Iterator[Result]:
    from pyspark import InheritableThread
    from pyspark.accumulators import AccumulatorParam

    class Append(AccumulatorParam[Any]):
        def zero(self, value: Any) -> Any:
            return deque()

        def addInPlace(self, value1: Any, value2: Any) -> Any:  # noqa: N802 - Spark's word
            value1.extend(value2)
            return value1

    context = spark.sparkContext
    results = context.accumulator(deque(), Append())
    group = f"ordercast-{uuid.uuid4()}"
    failed: list[Exception] = []

    def work(item: Item) -> None:
        try:
            results.add([function(item)])
        except OrdercastError as error:
            results.add([error])

    def job() -> None:
        context.setJobGroup(group, "ordercast", interruptOnCancel=True)
        try:
            context.parallelize(items, len(items)).foreach(work)
        except Exception as error:
            failed.append(error)

    thread = InheritableThread(target=job, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(_LOOK_S)
            yield from _taken(results.value)
        yield from _taken(results.value)
    finally:
        while thread.is_alive():  # more than once: the job may not have begun
            context.cancelJobGroup(group)
            thread.join(_LOOK_S)
    if failed:
        raise failed[0]


def _taken(results: deque[Any]) -> Iterator[Any]:
    while results:
        result = results.popleft()
        if isinstance(result, OrdercastError):
            raise result
        yield result
