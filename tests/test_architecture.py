"""The arrow of folders is a test: who may import whom, and what stays pure."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import ordercast

SOURCE = Path(ordercast.__file__).parent
ROOT = SOURCE.parent.parent

ROOMS = {
    "protocols": set(),
    "trace": {"protocols"},
    "simulator": {"protocols", "trace"},
    "runtime": {"protocols", "trace"},
    "replica": {"protocols", "runtime"},
    "oracle": {"trace"},
    "pipeline": {"trace"},
    "report": {"trace"},
    "sweep": {"protocols", "trace", "simulator", "pipeline"},
    "testing": {"trace", "runtime", "oracle", "pipeline"},
    "cli": {"protocols", "trace", "simulator", "runtime", "oracle", "pipeline", "report", "sweep"},
}
PURE = {
    *("__future__", "abc", "bisect", "collections", "collections.abc", "dataclasses", "enum"),
    *("functools", "heapq", "itertools", "math", "msgspec", "operator", "typing"),
}


def imports(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative imports hide the arrow"
            yield node.module or ""
            # `from ordercast import pipeline` imports the room as well.
            if node.module == "ordercast":
                yield from (f"ordercast.{alias.name}" for alias in node.names)


def room_files() -> list[tuple[str, Path]]:
    return [(room, file) for room in ROOMS for file in sorted((SOURCE / room).rglob("*.py"))]


@pytest.mark.parametrize(("room", "file"), room_files(), ids=lambda value: str(value))
def test_a_room_imports_only_what_the_arrow_allows(room: str, file: Path) -> None:
    used = {name.split(".")[1] for name in imports(file) if name.startswith("ordercast.")}
    assert used & set(ROOMS) <= ROOMS[room] | {room}


def test_every_folder_is_a_room_of_the_table() -> None:
    folders = {path.name for path in SOURCE.iterdir() if path.is_dir() and path.name[0] != "_"}
    assert folders == set(ROOMS)


@pytest.mark.parametrize("file", sorted((SOURCE / "protocols").rglob("*.py")), ids=str)
def test_protocols_are_pure(file: Path) -> None:
    foreign = {name for name in imports(file) if not name.startswith("ordercast.")}
    assert foreign <= PURE


def test_only_the_pipeline_imports_pyspark() -> None:
    users = {
        room
        for room, file in room_files()
        if any(name.split(".")[0] == "pyspark" for name in imports(file))
    }
    assert users <= {"pipeline"}


def test_the_core_imports_without_spark_and_its_friends() -> None:
    program = (
        "import sys\n"
        "for name in ('pyspark', 'pyarrow', 'pandas', 'numpy'): sys.modules[name] = None\n"
        "import ordercast, ordercast.cli, ordercast.trace, ordercast.report\n"
        "import ordercast.simulator.run, ordercast.runtime, ordercast.oracle, ordercast.testing\n"
        "from ordercast.cli import main\n"
        "sys.exit(main(['simulate', '--messages', '2']))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "6 messages sent, 18 deliveries" in done.stdout


def test_no_lock_file_and_no_path_of_this_checkout() -> None:
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    assert not [name for name in listed if Path(name).name in ("uv.lock", "poetry.lock")]
    here = str(ROOT).encode() + b"/"
    assert not [name for name in listed if here in (ROOT / name).read_bytes()]
