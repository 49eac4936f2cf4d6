"""What Spark's Python workers take, seen from outside."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Watch", "free_mib", "peak_mib"]

_LOOK_S = 0.05
_PAGES_PER_MIB = (1 << 20) // os.sysconf("SC_PAGE_SIZE")


class Watch:
    """Within it, the greatest resident size of any worker is kept, and who takes too long or too
    much is stopped.

    The workers are the children of a daemon that is a child of the JVM; looking at them twenty
    times a second takes a thousandth of a core.
    """

    def __init__(self, spark: SparkSession, *, limit_s: float, limit_mib: float) -> None:
        self.peak_mib = 0.0
        self.stopped: str | None = None
        """Why."""
        self._context = spark.sparkContext
        self._jvm: int = self._context._gateway.proc.pid
        self._limit_s, self._limit_mib = limit_s, limit_mib
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        daemons: list[int] = []
        looks = 0
        while not self._over.wait(_LOOK_S):
            if looks % 20 == 0 or not daemons:
                daemons = _children(self._jvm)
            looks += 1
            workers = [pid for daemon in daemons for pid in _children(daemon)]
            self.peak_mib = max([self.peak_mib, *map(_resident_mib, workers)])
            if self.stopped is None and looks * _LOOK_S > self._limit_s:
                self._stop(f"gave up after {self._limit_s:.0f} s")
            elif self.stopped is None and self.peak_mib > self._limit_mib:
                self._stop(f"gave up: a worker took more than {self._limit_mib:,.0f} MiB")

    def _stop(self, why: str) -> None:
        self.stopped = why
        self._context.cancelAllJobs()


def free_mib() -> float:
    """What the machine could still give."""
    words = Path("/proc/meminfo").read_text().partition("MemAvailable:")[2]
    return int(words.split()[0]) / 1024


def peak_mib(pid: int) -> float:
    """The greatest resident size that a process has had so far; 0 if it is gone."""
    with suppress(OSError):
        words = Path(f"/proc/{pid}/status").read_text().partition("VmHWM:")[2]
        return int(words.split()[0]) / 1024 if words else 0.0
    return 0.0


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):  # it is gone, and so are they
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                found += map(int, (task / "children").read_text().split())
    return found


def _resident_mib(pid: int) -> float:
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) / _PAGES_PER_MIB
    return 0.0
