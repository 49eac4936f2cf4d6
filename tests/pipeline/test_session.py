"""The session as a stranger meets it: in a process of its own, in a directory of its own."""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import ordercast
from ordercast.errors import SetupError, UsageError
from ordercast.pipeline.cluster import address_towards
from ordercast.pipeline.jvm import interruptible
from ordercast.pipeline.session import _start, open_session, session
from ordercast.pipeline.settings import settings_for
from ordercast.pipeline.shipping import in_tasks, is_local, local_path, pack, plainly

from .builders import run, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TIMEOUT_S = 120


def python(program: str, directory: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=directory,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )


@pytest.mark.parametrize(
    ("size", "by_python", "java", "spark"),
    [
        (1 << 10, True, False, False),
        (1 << 10, False, False, False),
        (1 << 20, False, False, True),
        (1 << 30, True, False, True),
        (1 << 30, False, True, True),
    ],
)
def test_only_what_takes_long_is_compiled(
    size: int, by_python: bool, java: bool, spark: bool
) -> None:
    """By the JVM's second compiler, and by Spark's own."""
    settings = settings_for(size, by_python=by_python)
    assert ("spark.driver.extraJavaOptions" not in settings) == java
    assert (settings.get("spark.sql.codegen.factoryMode") != "NO_CODEGEN") == spark


def test_spark_is_neither_heard_nor_left_behind(tmp_path: Path) -> None:
    """One subprocess for all of this, because each costs a start of Spark."""
    trace = write(tmp_path / "trace", [run("r", "s1 d0:1", "d0:1")])
    (tmp_path / "here").mkdir()
    (tmp_path / "scratch").mkdir()
    program = f"""
import json
from pathlib import Path
from ordercast.errors import SetupError
from ordercast.pipeline import judge, open_session, session

try:
    open_session(master="nonsense")
except SetupError as error:
    refused = str(error)
mine = {{
    "spark.app.name": "mine",
    "spark.sql.shuffle.partitions": "3",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
}}
with session(config=mine) as spark:
    conf = {{name: spark.conf.get(name) for name in (
        "spark.app.name", "spark.sql.shuffle.partitions", "spark.driver.host",
        "spark.driver.bindAddress", "spark.ui.enabled", "spark.sql.session.timeZone")}}
    same = open_session() is spark
    judged = judge(Path({str(trace)!r}))  # in the session that is open, which stays open
    spark.sql("CREATE TABLE made AS SELECT 1 AS one")
    conf["rows"] = spark.table("made").count()
scratch = sorted(path.name for path in Path({str(tmp_path / "scratch")!r}).iterdir())
print(json.dumps([refused, conf, same, judged.to_json(), scratch]))
"""
    done = python(program, tmp_path / "here", TMPDIR=str(tmp_path / "scratch"))
    assert (done.returncode, done.stderr) == (0, "")
    refused, conf, same, judged, scratch = json.loads(done.stdout)
    assert refused == (
        "Spark did not start: Master must either be yarn or start with spark, k8s, or local"
    )
    assert conf == {
        "spark.app.name": "mine",
        "spark.sql.shuffle.partitions": "3",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "rows": 1,
    }
    assert same
    assert (judged["runs"], judged["events"], judged["order_held"]) == (1, 3, "synchronous")
    assert not [name for name in scratch if name.startswith("ordercast")]
    assert not list((tmp_path / "here").iterdir())


OPEN = """
from ordercast.errors import SetupError
from ordercast.pipeline import open_session
try:
    open_session()
except SetupError as error:
    print(error)
"""
GET_JAVA = (
    "install Java 17 or newer (Debian: apt-get install default-jre-headless) or set JAVA_HOME"
)


def test_no_java(tmp_path: Path) -> None:
    done = python(OPEN, tmp_path, PATH=str(tmp_path), JAVA_HOME="")
    assert (done.stderr, done.stdout) == (
        "",
        f"Spark needs Java, and there is none on this machine: {GET_JAVA}\n",
    )


def test_a_java_home_without_java(tmp_path: Path) -> None:
    done = python(OPEN, tmp_path, JAVA_HOME=str(tmp_path))
    assert (done.stderr, done.stdout) == (
        "",
        f"Spark needs Java, and JAVA_HOME={tmp_path} has no bin/java: {GET_JAVA}\n",
    )


@pytest.mark.parametrize("version", ["1.8.0_392", "11.0.21"])
def test_an_old_java(tmp_path: Path, version: str) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\nexit 1\n")
    java.chmod(0o755)
    done = python(OPEN, tmp_path, JAVA_HOME=str(tmp_path))
    major = {"1.8.0_392": 8, "11.0.21": 11}[version]
    assert (done.stderr, done.stdout) == (
        "",
        f"Spark did not start: it found Java {major}: {GET_JAVA}\n",
    )


def test_the_last_useful_line_is_told(tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(
        "#!/bin/sh\n[ $1 = -version ] && echo 'openjdk version \"17.0.1\"' >&2 && exit 0\n"
        "echo 'the disk is full' >&2\n"
        "echo 'Error: A fatal exception has occurred. Program will exit.' >&2\nexit 1\n"
    )
    java.chmod(0o755)
    done = python(OPEN, tmp_path, JAVA_HOME=str(tmp_path))
    assert (done.stderr, done.stdout) == ("", "Spark did not start: the disk is full\n")


def test_a_java_that_was_killed_is_told_as_such(tmp_path: Path) -> None:
    """In the middle of a job."""
    program = """
import os, signal, threading
from ordercast.errors import SetupError
from ordercast.pipeline import jvm, session
try:
    with session() as spark:
        threading.Timer(1, os.kill, (jvm._launched[0].pid, signal.SIGKILL)).start()
        spark.range(1 << 40).selectExpr("max(hash(id))").collect()
except SetupError as error:
    print(error)
"""
    done = python(program, tmp_path, TMPDIR=str(tmp_path))
    assert done.stdout == (
        "Java, in which Spark runs, was ended by something else (SIGKILL), as systems do for want "
        "of memory: let this machine have more to spare, and try again\n"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert not list(tmp_path.iterdir())


def test_too_few_files(tmp_path: Path) -> None:
    limited = f"import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))\n{OPEN}"
    done = python(limited, tmp_path)
    assert done.stdout == (
        "Spark did not start: it opens hundreds of files, and a process may have 128 (ulimit -n): "
        "allow more, such as 1024\n"
    )


def test_no_pyspark(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "for name in ('pyspark', 'pyarrow', 'pandas', 'numpy'): sys.modules[name] = None\n"
        "from pathlib import Path\n"
        "from ordercast.errors import SetupError\n"
        "from ordercast.pipeline import judge\n"
        "try: judge(Path('trace'))\n"
        "except SetupError as error: print(error)\n"
    )
    done = python(program, tmp_path)
    assert done.stderr == ""
    assert done.stdout.endswith(": pip install 'ordercast[spark]'\n")


def test_a_session_within_a_session_is_the_same_and_stays_open(spark: object) -> None:
    with session(master="local[1]") as inner:
        assert inner is spark
    assert open_session() is spark
    assert inner.range(3).count() == 3


def test_what_ships_is_named_by_what_is_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, elsewhere = tmp_path / "packed", tmp_path / "packages" / "ordercast"
    here.mkdir()
    # Of a copy, as others may be compiling the kernels of the original.
    original = tmp_path / "original" / "ordercast"
    shutil.copytree(Path(ordercast.__file__).parent, original)
    monkeypatch.setattr(ordercast, "__file__", str(original / "__init__.py"))
    first = pack(here)
    content = first.read_bytes()
    shutil.copytree(original, elsewhere)  # as from a wheel
    monkeypatch.setattr(ordercast, "__file__", str(elsewhere / "__init__.py"))
    assert pack(here) == first
    assert first.read_bytes() == content
    (elsewhere / "errors.py").write_text("# changed\n")
    assert pack(here) != first
    shutil.unpack_archive(first, tmp_path / "unpacked")
    assert (tmp_path / "unpacked" / "py.typed").exists()
    assert not list((tmp_path / "unpacked").rglob("*.pyc"))


def test_with_a_local_master_a_file_is_where_it_is(spark: SparkSession, tmp_path: Path) -> None:
    tokens = in_tasks(spark, [tmp_path / "a", tmp_path / "b"])
    assert {file: local_path(token) for file, token in tokens.items()} == {
        tmp_path / "a": tmp_path / "a",
        tmp_path / "b": tmp_path / "b",
    }


def test_where_paths_are_shared_nothing_is_sent(tmp_path: Path) -> None:
    conf = {"spark.ordercast.shared": "true"}
    context = SimpleNamespace(master="spark://far:7077", getConf=lambda: conf)
    spark: Any = SimpleNamespace(sparkContext=context)
    assert in_tasks(spark, [tmp_path / "a"]) == {tmp_path / "a": str(tmp_path / "a")}


@pytest.mark.parametrize(
    ("master", "local"),
    [("local", True), ("local[*]", True), ("local-cluster[2,1,1024]", False), ("yarn", False)],
)
def test_which_masters_are_local(master: str, local: bool) -> None:
    assert is_local(master) == local


def test_the_driver_is_found_by_the_address_that_faces_the_master() -> None:
    with socket.create_server(("127.0.0.1", 0)) as dead:
        nobody = dead.getsockname()[1]
    with socket.create_server(("127.0.0.2", 0)) as alive:
        port = alive.getsockname()[1]
        towards = f"spark://127.0.0.2:{nobody},127.0.0.2:{port}"  # one in reserve
        assert address_towards(towards) in ("127.0.0.1", "127.0.0.2")
    assert address_towards("yarn") is None
    with pytest.raises(SetupError, match=f"127.0.0.2:{nobody} .* or 127.0.0.2:{port} "):
        address_towards(towards)


def test_how_long_to_wait_is_a_number() -> None:
    wrong = {"spark.ordercast.wait": "soon"}
    with pytest.raises(UsageError, match="wait='soon' is not a number of seconds"):
        _start("local[1]", wrong, verbose=False)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("Master removed our application: KILLED", "the master has ended this job (KILLED)"),
        ("ERROR: All masters are unresponsive! Giving up.", "what takes connections there"),
        ("java.io.IOException: No space left on device", "worker w has no space left"),
        ("[PACKAGE_NOT_INSTALLED] PyArrow >= 18.0.0 must be", "worker w has no Python package Py"),
        ("ModuleNotFoundError: No module named 'ordercast.pipeline.nothing'", None),
        ("ZeroDivisionError: division by zero", None),
    ],
)
def test_what_spark_says_in_plain_words(words: str, told: str | None) -> None:
    sentence = plainly(f"Traceback:\n  …\n{words}\n\tat x", "worker w")
    assert sentence is None if told is None else (sentence or "").startswith(told)


def test_a_full_disk_of_this_machine_is_named() -> None:
    shuffle = "Lost task 1.0 (TID 8) (localhost executor driver): No space left on device\n\tat x"
    told = plainly(shuffle, "this machine") or ""
    assert told.startswith("this machine has no space left in its temporary directory, ")
    assert f", {tempfile.gettempdir()}, " in told
    assert "set TMPDIR" in told
    written = (
        "[TASK_WRITE_FAILED] Task failed while writing rows to file:/mnt/a b/.out.17. SQLSTATE: 58"
        "030\n\tat x\nCaused by: org.apache.hadoop.fs.FSError: java.io.IOException: No space left "
        "on device"
    )
    told = plainly(written, "this machine") or ""
    assert told.startswith("this machine has no space left in /mnt/a b: make room there")


def test_an_error_that_nobody_can_mend_stays_what_it_is(spark: object) -> None:
    with pytest.raises(ZeroDivisionError), session():
        raise ZeroDivisionError
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND") as raised, session() as same:
        same.table("nowhere")
    assert "nowhere" in raised.value.__notes__[0]


def alive(scratch: Path) -> list[str]:
    """The processes that were told of this directory."""
    told = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if str(scratch).encode() in (process / "cmdline").read_bytes():
                told.append(process.name)
        except OSError:  # it has ended
            continue
    return told


@pytest.mark.parametrize(
    ("moment", "number"),
    [
        ("log.txt", signal.SIGINT),
        ("blockmgr-*", signal.SIGTERM),
        ("artifacts-*", signal.SIGINT),
    ],
)
def test_who_is_interrupted_says_so_in_a_line_and_leaves_nothing(
    tmp_path: Path, moment: str, number: int
) -> None:
    """While the JVM starts, while Spark starts in it, and while it judges."""
    trace = write(tmp_path / "trace", [run("r", "s1 d0:1", "d0:1")])
    (scratch := tmp_path / "scratch").mkdir()
    verify = subprocess.Popen(
        [sys.executable, "-m", "ordercast", "verify", str(trace)],
        env=os.environ | {"TMPDIR": str(scratch)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    end = time.monotonic() + TIMEOUT_S
    while not list(scratch.glob(f"ordercast-spark-*/{moment}")) and time.monotonic() < end:
        time.sleep(0.01)
    verify.send_signal(number)
    try:
        said, told = verify.communicate(timeout=TIMEOUT_S)
    finally:
        verify.kill()
    assert (verify.returncode, said) == (128 + number, "")
    assert told == f"judging {trace} on Spark …\nordercast verify: interrupted\n"
    while (left := alive(scratch)) and time.monotonic() < end:  # Python's workers look around
        time.sleep(0.05)
    assert left == []
    assert not list(scratch.iterdir())


def test_a_script_that_does_not_stop_its_session_ends_quietly(tmp_path: Path) -> None:
    program = (
        "from ordercast.pipeline import open_session\n"
        "spark = open_session(master='local[1]')\n"
        "spark.sparkContext.parallelize([1], 1).foreach(print)\n"
    )
    done = python(program, tmp_path, TMPDIR=str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not list(tmp_path.iterdir())


def test_what_the_bridge_logs_and_raises_as_well_is_not_shown_twice(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As py4j does if the connection with a killed Java is reset, and not closed."""
    with interruptible():
        logging.error("Exception while sending command.")
        logging.error("anything else")
    logging.error("Exception while sending command.")
    assert caplog.messages == ["anything else", "Exception while sending command."]
