"""Members that find each other in a directory: real files, and real processes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ordercast.errors import UsageError
from ordercast.runtime.discovery import Address, DiscoveryError, Membership, Registry, assemble

from .helpers import until

A, B, C = (Address("127.0.0.1", port) for port in (7001, 7002, 7003))


def join_registry(finder: Registry, me: str, address: Address, timeout_s: float = 5) -> Membership:
    async def go() -> Membership:
        try:
            return await assemble(finder, me=me, address=address, timeout_s=timeout_s, poll_s=0.02)
        finally:
            await finder.withdraw()

    return asyncio.run(go())


def entry(directory: Path, name: str, address: Address, *, age_s: float = 0) -> Path:
    """As a member that was killed leaves it behind."""
    path = directory / f"{name}.json"
    path.write_text(json.dumps({"name": name, "address": str(address)}))
    then = path.stat().st_mtime - age_s
    os.utime(path, (then, then))
    return path


MEMBER = """
import asyncio, sys
from ordercast.runtime.discovery import Address, Registry, assemble

async def main(directory, me, port):
    finder = Registry(directory, 3, renew_s=0.05)
    membership = await assemble(
        finder, me=me, address=Address("127.0.0.1", int(port)), timeout_s=20,
        on_progress=lambda presence: print(presence, flush=True))
    print(*(f"{name}={membership.addresses[name]}" for name in membership.names), flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await finder.withdraw()

asyncio.run(main(*sys.argv[1:]))
"""


@contextlib.contextmanager
def member(directory: Path, me: str, port: int) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", MEMBER, str(directory), me, str(port)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with process:
        try:
            yield process
        finally:
            process.kill()


def last_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        if "=" in line:
            return line.strip()
    raise AssertionError("it ended before it knew everyone")


def test_three_processes_find_each_other_and_one_that_was_killed_comes_back(tmp_path: Path) -> None:
    directory = tmp_path / "made" / "by" / "the" / "first"
    everyone = "a=127.0.0.1:7001 b=127.0.0.1:7002 c=127.0.0.1:7003"
    with member(directory, "a", 7001) as a, member(directory, "b", 7002) as b:
        with member(directory, "c", 7003) as c:
            assert {last_line(process) for process in (a, b, c)} == {everyone}
        assert (directory / "c.json").exists()  # it was killed and could not clean up
        with member(directory, "c", 7004) as c:
            assert last_line(c) == everyone.replace("7003", "7004")
            for process in (a, b, c):
                assert process.communicate(timeout=10)[1] is None
                assert process.returncode == 0
    assert list(directory.iterdir()) == []


def test_whoever_was_killed_while_it_wrote_cleans_up_when_it_comes_back(tmp_path: Path) -> None:
    half, of_another = tmp_path / ".a.json.0123abcd", tmp_path / ".b.json.0123abcd"
    for file in (half, of_another):
        file.write_bytes(b'{"name":')
    join_registry(Registry(tmp_path, 1), "a", A)
    assert not half.exists()
    assert of_another.exists()


def test_what_a_dead_member_left_long_ago_does_not_count(tmp_path: Path) -> None:
    entry(tmp_path, "b", B, age_s=100)
    said = r"1 of 2 present after 1 s: a; still missing: 1 more \('b' was last there 10\d s ago\)"
    with pytest.raises(DiscoveryError, match=said):
        join_registry(Registry(tmp_path, 2), "a", A, timeout_s=1)
    entry(tmp_path, "b", B, age_s=1)
    assert join_registry(Registry(tmp_path, 2), "a", A).addresses == {"a": A, "b": B}


def test_age_is_told_by_the_file_systems_clock_not_by_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time", lambda: 1e10)
    entry(tmp_path, "b", B)
    assert join_registry(Registry(tmp_path, 2), "a", A).names == ("a", "b")


def test_a_member_renews_its_file_while_it_lives(tmp_path: Path) -> None:
    async def go() -> None:
        finder = Registry(tmp_path, 2, renew_s=0.01)
        await finder.announce("a", A)
        os.utime(file, (0, 0))
        await until(lambda: file.stat().st_mtime > 0)
        file.unlink()  # somebody cleans up
        await until(file.exists)
        await finder.withdraw()
        await asyncio.sleep(0.05)

    file = tmp_path / "a.json"
    asyncio.run(go())
    assert list(tmp_path.iterdir()) == []


def test_foreign_and_half_written_files_are_left_out_with_one_warning_each(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    half = entry(tmp_path, "half", B).read_bytes()
    foreign = {
        "half.json": half[:-5],
        "empty.json": b"",
        "list.json": b"[1]",
        "latin.json": b'{"name": "\xff"}',
        "liar.json": half,
        "where.json": b'{"name": "where", "address": "nowhere"}',
        "huge.json": b" " * 100_000,
        "od d.json": b'{"name": "od d", "address": "h:1"}',
        "deep.json": b'{"x": ' + b"[" * 4000,
    }
    for name, data in foreign.items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "folder.json").mkdir()
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "notes.txt").write_text("not looked at")

    async def look_twice() -> None:
        registry = Registry(tmp_path, 2)
        await registry.announce("a", A)
        for _ in range(2):
            assert await registry.look() == {"a": A}
        await registry.withdraw()

    asyncio.run(look_twice())
    warned = sorted(record.args[0].name for record in caplog.records)
    assert warned == sorted([*foreign, "folder.json", "pipe.json"])


def test_more_members_than_the_group_has_are_refused(tmp_path: Path) -> None:
    entry(tmp_path, "b", B)
    entry(tmp_path, "c", C)
    with pytest.raises(DiscoveryError, match="has 3 members and the group is one of 2: a, b, c"):
        join_registry(Registry(tmp_path, 2), "a", A)
    assert not (tmp_path / "a.json").exists()


def test_of_two_processes_with_one_name_the_earlier_one_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def go() -> None:
        first, second = Registry(tmp_path, 2, renew_s=0.02), Registry(tmp_path, 2)
        await first.announce("a", A)
        await second.announce("a", B)
        with pytest.raises(DiscoveryError, match=r"another process calls itself 'a' in .*:7002"):
            await first.look()
        await asyncio.sleep(0.1)
        await first.withdraw()
        assert ":7002" in file.read_text()
        assert await second.look() == {"a": B}
        await second.withdraw()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    file = tmp_path / "a.json"
    asyncio.run(go())
    assert [record.levelname for record in caplog.records] == ["ERROR"]


def test_a_directory_that_cannot_be_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DiscoveryError, match=r"'a' cannot be announced in .*file"):
        join_registry(Registry(tmp_path / "file", 2), "a", A)


@pytest.mark.parametrize("address", [Address("0.0.0.0", 7001), Address("::", 7001)])
def test_an_address_that_nobody_can_reach_is_not_announced(
    tmp_path: Path, address: Address
) -> None:
    with pytest.raises(UsageError, match="others cannot reach"):
        asyncio.run(Registry(tmp_path, 2).announce("a", address))
