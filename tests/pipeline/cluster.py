"""A real Spark cluster on this machine: a master and workers, from the pyspark that is installed;
and drivers that use it.

Each of them leads a session of its own, in the operating system's sense, which all that it starts
belongs to as well: executors, their Python workers, the driver's JVM. So everything can be found,
and ended, whatever became of its parent (Linux only).
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyspark

from ordercast.pipeline.java import class_archive

SPARK_HOME = Path(pyspark.__file__).parent
PATIENCE_S = 200
"""On busy cores, two drivers and their workers take a minute for what takes ten seconds alone."""
LOOK_S = 0.05
"""Between two looks at all processes of this machine, which are work themselves."""


@dataclass
class Daemon:
    """A master or a worker, with its log."""

    process: subprocess.Popen[bytes]
    log: Path

    def logged(self, pattern: str) -> re.Match[str] | None:
        return re.search(pattern, self.log.read_text(errors="replace"))

    def pids(self) -> list[int]:
        return session_pids(self.process.pid)

    def python_tasks(self) -> list[int]:
        """Processes that run a task's Python: forked by the one that executors start for it."""
        daemons = {pid for pid in self.pids() if "pyspark.daemon" in command_of(pid)}
        return [pid for pid in daemons if parent_of(pid) in daemons]

    def kill(self) -> None:
        """At once, with all that it started, as if its machine had lost power."""
        end_session(self.process)


@dataclass
class Cluster:
    directory: Path
    daemons: list[Daemon] = field(default_factory=list)

    @property
    def master(self) -> str:
        found = self.daemons[0].logged(r"Starting Spark master at (\S+)")
        assert found is not None
        return found[1]

    @property
    def workers(self) -> list[Daemon]:
        """Those that are up."""
        return [daemon for daemon in self.daemons[1:] if daemon.process.poll() is None]

    def start(self, workers: int) -> None:
        """Brings it up, or makes good for the workers that were killed."""
        if not self.daemons:
            master = self._launch("master", "master.Master", "--port", "0")
            until(lambda: master.logged("New state: ALIVE"), "the master's start")
        for _ in range(workers - len(self.workers)):
            name = f"worker-{len(self.daemons)}"
            options = ["--port", "0", "--cores", "1", "--memory", "1g"]
            place = ["--work-dir", str(self.directory / name)]
            self._launch(name, "worker.Worker", *options, *place, self.master)
        until(
            lambda: all(w.logged("Successfully registered with master") for w in self.workers),
            "the start of the workers",
        )

    def stop(self) -> None:
        for daemon in reversed(self.daemons):
            daemon.kill()

    def pids(self) -> list[int]:
        return [pid for daemon in self.daemons for pid in daemon.pids()]

    def _launch(self, name: str, kind: str, *options: str) -> Daemon:
        log = self.directory / f"{name}.log"
        command = [str(SPARK_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}"]
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*command, "--host", "127.0.0.1", "--webui-port", "0", *options],
                cwd=self.directory,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self.daemons.append(Daemon(process, log))
        return self.daemons[-1]

    def _environment(self) -> Mapping[str, str]:
        # Short jobs do not live to see what the JVM's second compiler makes of them.
        java = f"-Djava.io.tmpdir={self.directory} -XX:-UsePerfData -XX:TieredStopAtLevel=1"
        if (archive := class_archive()).is_file():
            java += f" -XX:SharedArchiveFile={archive} -Xlog:cds=off -Xlog:cds+dynamic=off"
        ours = {
            "JAVA_TOOL_OPTIONS": java,
            # Empty of settings; and kept classes are for a path that begins with it.
            "SPARK_CONF_DIR": str(SPARK_HOME / "conf"),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_LOCAL_DIRS": str(self.directory),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
        }
        return os.environ | ours


class Driver:
    """A program in a process of its own, in an empty directory `here`."""

    def __init__(self, directory: Path, *command: str, **environment: str) -> None:
        self.scratch, self.here = directory / "scratch", directory / "here"
        for folder in (self.scratch, self.here):
            folder.mkdir(parents=True, exist_ok=True)
        self._found = sorted(self.here.iterdir())
        self.process = subprocess.Popen(
            [sys.executable, *command],
            cwd=self.here,
            env=os.environ | {"TMPDIR": str(self.scratch)} | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def answer(self) -> tuple[int, str, str]:
        """Its exit code, what it printed, and its complaints, without how far Spark was; it must
        leave nothing else behind."""
        output, told = self.process.communicate(timeout=PATIENCE_S)
        lines = told.splitlines(keepends=True)
        errors = "".join(line for line in lines if not re.fullmatch(r"… \d+ of \d+ tasks\n", line))
        assert session_pids(self.process.pid) == []
        assert list(self.scratch.iterdir()) == []
        assert sorted(self.here.iterdir()) == self._found
        return self.process.returncode, output, errors

    def end(self) -> None:
        end_session(self.process)
        self.process.communicate()


def until(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"waited {PATIENCE_S} s in vain for {what}"
        time.sleep(LOOK_S)


def session_pids(leader: int) -> list[int]:
    """The leader and all that it started, as far as they still run."""
    pids = (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())
    return [pid for pid in pids if (stat := _stat(pid))[3] == str(leader) and stat[0] not in "ZX"]


def end_session(leader: subprocess.Popen[Any]) -> None:
    for pid in session_pids(leader.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    leader.wait()
    until(lambda: not session_pids(leader.pid), "the end of killed processes")


def parent_of(pid: int) -> int:
    return int(_stat(pid)[1])


def command_of(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    return ""


def _stat(pid: int) -> list[str]:
    """State, parent, group, session, …; of a process that has ended, that it has."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return ["X", "0", "0", "0"]
