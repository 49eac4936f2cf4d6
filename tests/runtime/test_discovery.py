"""Addresses, lists of members, waiting for everyone, and what a user may write."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import errno
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.errors import UsageError
from ordercast.runtime.discovery import (
    Address,
    Answer,
    DiscoveryError,
    Dns,
    Finder,
    Membership,
    Presence,
    Registry,
    StaticList,
    Via,
    assemble,
    from_toml,
    parse_peers,
)
from ordercast.runtime.discovery.remembered import recall, remember

PAGE = Path(__file__).parents[2] / "docs" / "discovery.md"
A, B, C = (Address("127.0.0.1", port) for port in (7001, 7002, 7003))


async def nobody(address: Address) -> Answer:
    raise ConnectionRefusedError("nobody there")


# Addresses


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:7001", Address("127.0.0.1", 7001)),
        ("[::1]:7001", Address("::1", 7001)),
        ("db-1.orders_x.svc:1", Address("db-1.orders_x.svc", 1)),
    ],
)
def test_an_address_is_read_as_it_is_written(text: str, address: Address) -> None:
    assert Address.parse(text) == address
    assert str(address) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "7001",
        "host",
        "host:",
        ":7001",
        "::1:7001",
        "[host]:1",
        "[::1]",
        "a b:1",
        "a:1\n",
        "a:-1",
    ],
)
def test_what_is_no_address_is_told_how_to_write_one(text: str) -> None:
    with pytest.raises(UsageError, match=r"is no address: write '127\.0\.0\.1:7001'"):
        Address.parse(text)


@pytest.mark.parametrize("text", ["host:0", "host:65536"])
def test_ports_have_a_range(text: str) -> None:
    with pytest.raises(UsageError, match="is not from 1 to 65535"):
        Address.parse(text)


@pytest.mark.parametrize(
    "host", ["host..example", ".example", "x" * 64, f"a.{'x' * 64}.b", f"[fe80::1%{'x' * 64}]"]
)
def test_a_host_that_nobody_could_look_up_is_told_at_once(host: str) -> None:
    with pytest.raises(UsageError, match="is no name of a host: between its dots, write from 1 to"):
        Address.parse(f"{host}:7001")


@given(st.from_regex(r"\[?[0-9a-z:.]{1,8}\]?:[0-9]{1,6}") | st.text(max_size=30))
def test_any_text_is_an_address_or_a_sentence(text: str) -> None:
    with contextlib.suppress(UsageError):
        address = Address.parse(text)
        assert Address.parse(str(address)) == address
        address.host.encode("idna")  # as looking it up does


# A list that is known beforehand


def test_a_list_is_a_whole_membership_at_once() -> None:
    membership = asyncio.run(assemble(StaticList({"b": B, "a": A}), me="a", address=C, timeout_s=1))
    assert membership == Membership(("a", "b"), {"a": A, "b": B})


def test_who_is_not_in_the_list_cannot_join() -> None:
    with pytest.raises(UsageError, match="'c' is not in the list of members: a, b"):
        asyncio.run(assemble(StaticList({"a": A, "b": B}), me="c", address=C, timeout_s=1))


def test_a_toml_file_may_have_other_tables(tmp_path: Path) -> None:
    file = tmp_path / "group.toml"
    file.write_text('order = "causal"\n[members]\nb = "127.0.0.1:7002"\na = "[::1]:7001"\n')
    assert asyncio.run(from_toml(file).look()) == {"b": B, "a": Address("::1", 7001)}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[members", "is not TOML: "),
        ("x = 1", 'has no table [members] with lines such as a = "10.0.0.1:7001"'),
        ("[members]", "has no table [members]"),
        ("members = 3", "has no table [members]"),
        ("[members]\na = 7001", ', members.a: write "host:port" in quotes, not the number 7001'),
        ('[members]\na = "host"', ", members.a: 'host' is no address"),
        ('[members]\n"a b" = "h:1"', ", members.\"a b\": 'a b' cannot be the name of a member"),
        ('[members]\na = "h:1"\nb = "h:1"', ", [members]: 'a' and 'b' cannot both be at h:1"),
        ('[members]\na = "0.0.0.0:1"', ", [members]: others cannot reach 0.0.0.0:1"),
    ],
)
def test_a_wrong_toml_file_is_told_precisely(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "group.toml"
    file.write_text(text)
    with pytest.raises(UsageError) as raised:
        from_toml(file)
    assert str(raised.value).startswith(str(file))
    assert said in str(raised.value)


def test_a_toml_file_that_is_missing_or_binary(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        from_toml(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="is not TOML"):
        from_toml(tmp_path / "binary.toml")


# Waiting for everyone


class Scripted(Finder):
    """Finds what the script says, look by look; the last line stays."""

    def __init__(self, looks: list[dict[str, Address]], size: int = 3) -> None:
        self.size = size
        self.known = {}
        self.withdrawn = False
        self._looks = looks

    async def announce(self, me: str, address: Address) -> None:
        self.known[me] = address

    async def look(self) -> dict[str, Address]:
        return self._looks.pop(0) if len(self._looks) > 1 else self._looks[0]

    async def withdraw(self) -> None:
        self.withdrawn = True

    def learn(self, name: str, address: Address) -> None:
        raise AssertionError


def run_scripted(
    finder: Finder,
    *,
    timeout_s: float = 10,
    on_progress: Callable[[Presence], None] | None = None,
    remembered: dict[str, Address] | None = None,
) -> tuple[Membership, float]:
    """In virtual time: what came out, and when."""
    now = 0.0

    async def sleep(delay_s: float) -> None:
        nonlocal now
        now += delay_s

    async def go() -> Membership:
        return await assemble(
            finder, me="a", address=A, timeout_s=timeout_s, poll_s=1,
            on_progress=on_progress, clock=lambda: now, sleep=sleep, remembered=remembered,
        )  # fmt: skip

    return asyncio.run(go()), now


def test_progress_is_told_when_it_changes() -> None:
    said: list[str] = []
    finder = Scripted([{}, {}, {"b": B}, {"b": B}, {"b": B, "c": C}])
    membership, now = run_scripted(finder, on_progress=lambda presence: said.append(str(presence)))
    assert said == ["1 of 3 present", "2 of 3 present", "3 of 3 present"]
    assert (membership.names, now) == (("a", "b", "c"), 4.0)
    assert membership.addresses == {"a": A, "b": B, "c": C}
    assert not finder.withdrawn


def test_whoever_is_remembered_need_not_be_found() -> None:
    elsewhere = Address("127.0.0.1", 7009)
    before = {"a": elsewhere, "b": B, "c": C}
    said: list[str] = []
    membership, now = run_scripted(
        Scripted([{"b": C}]),
        on_progress=lambda presence: said.append(str(presence)),
        remembered=before,
    )
    assert (said, now) == (["2 of 3 present"], 0.0)
    assert membership.names == ("a", "b", "c")
    assert membership.addresses == {"a": A, "b": C, "c": C}, "c was there, and may have moved"
    membership, now = run_scripted(Scripted([{"d": B}, {"d": B, "e": C}]), remembered=before)
    assert (membership.names, now) == (("a", "d", "e"), 1.0), "it is another group by now"


@pytest.mark.parametrize("damage", [None, b"", b"[1]", b'{"a": "nowhere"}', b"\xff"])
def test_what_is_remembered_is_whole_or_nothing(damage: bytes | None, tmp_path: Path) -> None:
    assert recall(tmp_path, 2) == {}
    remember(tmp_path, {"b": B, "a": A})
    assert recall(tmp_path, 3) == {}
    assert recall(tmp_path, 2) == {"a": A, "b": B}
    if damage is not None:
        (tmp_path / "members.json").write_bytes(damage)
        assert recall(tmp_path, 2) == {}
    remember(tmp_path / "missing", {"a": A})


def test_a_timeout_names_who_is_missing() -> None:
    finder = Scripted([{"b": B}])
    finder.names = ("a", "b", "c")
    finder.trouble = "c is shy"
    said = r"2 of 3 present after 10 s: a, b; still missing: c \(c is shy\)"
    with pytest.raises(DiscoveryError, match=said):
        run_scripted(finder)
    assert finder.withdrawn


def test_a_timeout_without_names_says_how_many() -> None:
    with pytest.raises(DiscoveryError, match="1 of 3 present after 5 s: a; still missing: 2 more"):
        run_scripted(Scripted([{}]), timeout_s=5)


def test_a_finder_that_hangs_ends_at_the_timeout() -> None:
    class Hanging(Scripted):
        async def look(self) -> dict[str, Address]:
            await asyncio.Event().wait()
            return {}

    finder = Hanging([])
    with pytest.raises(DiscoveryError, match=r"1 of 3 present after 0\.05 s"):
        run_scripted(finder, timeout_s=0.05)
    assert finder.withdrawn


class Away(Scripted):
    """A service that cannot be reached for so many looks, and when nobody is to be there."""

    def __init__(self, looks: list[dict[str, Address]], away: int) -> None:
        super().__init__(looks)
        self._away = away

    async def look(self) -> dict[str, Address]:
        self._away -= 1
        if self._away >= 0:
            raise ConnectionRefusedError(errno.ECONNREFUSED, "not now")
        return await super().look()

    async def withdraw(self) -> None:
        raise RuntimeError("the service is gone")


def test_what_a_finder_asks_may_be_away_for_a_while(caplog: pytest.LogCaptureFixture) -> None:
    membership, now = run_scripted(Away([{"b": B, "c": C}], away=3))
    assert (membership.names, now) == (("a", "b", "c"), 3.0)
    before = {"a": A, "b": B, "c": C}
    membership, now = run_scripted(Away([{}], away=1), remembered=before)
    assert (membership.addresses, now) == (before, 0.0), "whoever comes back waits for nobody"
    with pytest.raises(DiscoveryError, match=r"missing: 2 more \(Connection refused\)$"):
        run_scripted(Away([{}], away=99))
    assert caplog.messages == ["Away.withdraw() failed: RuntimeError: the service is gone"]
    with pytest.raises(DiscoveryError, match=r"missing: 2 more$"):
        run_scripted(Away([{}], away=3))


@pytest.mark.parametrize("found", [None, {"b": "127.0.0.1:7002"}])
def test_what_a_finder_may_not_give_is_told(found: Any) -> None:
    with pytest.raises(UsageError, match=r"Scripted\.look\(\) gave .*: names with an Address each"):
        run_scripted(Scripted([found]))


def test_whoever_is_cancelled_withdraws() -> None:
    async def go(finder: Scripted) -> None:
        task = asyncio.create_task(assemble(finder, me="a", address=A, timeout_s=9))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    finder = Scripted([{}])
    asyncio.run(go(finder))
    assert finder.withdrawn


@pytest.mark.parametrize(
    ("look", "names", "said"),
    [
        ({"b": B, "d": C}, ("a", "b", "c"), "d: not among the members a, b, c"),
        ({"b": B, "c": C, "d": Address("h", 1)}, None, "the group has 3 members, and these are 4"),
        ({"b": A}, None, "'a' and 'b' cannot both be at 127.0.0.1:7001"),
    ],
)
def test_a_membership_that_contradicts_itself_is_refused_at_once(
    look: dict[str, Address], names: tuple[str, ...] | None, said: str
) -> None:
    finder = Scripted([look])
    finder.names = names
    with pytest.raises(DiscoveryError, match=said):
        run_scripted(finder)


@pytest.mark.parametrize(("me", "timeout_s"), [("a/b", 1), ("a", 0), ("a", float("nan"))])
def test_wrong_arguments_are_refused(me: str, timeout_s: float) -> None:
    with pytest.raises(UsageError):
        asyncio.run(assemble(Scripted([{}]), me=me, address=A, timeout_s=timeout_s))


# What a user may write


@pytest.mark.parametrize(
    "value",
    [
        {"a": "127.0.0.1:7001", "b": B},
        ["a=127.0.0.1:7001", "b=127.0.0.1:7002"],
        (f"{name}=127.0.0.1:{port}" for name, port in (("a", 7001), ("b", 7002))),
        StaticList({"a": A, "b": B}),
    ],
)
def test_lists_may_be_written_in_several_ways(value: object) -> None:
    finder = parse_peers(value, ask=nobody)
    assert asyncio.run(finder.look()) == {"a": A, "b": B}


def test_files_and_directories_may_be_named(tmp_path: Path) -> None:
    file = tmp_path / "group.toml"
    file.write_text('[members]\na = "127.0.0.1:7001"')
    for value in (file, str(file)):
        assert parse_peers(value, ask=nobody).known == {"a": A}
    finder = parse_peers(f"registry:{tmp_path}/group?size=1", ask=nobody)
    assert isinstance(finder, Registry)
    assert finder.size == 1
    asyncio.run(finder.announce("a", A))
    assert (tmp_path / "group" / "a.json").is_file()


@pytest.mark.parametrize(
    ("text", "kind", "asked"),
    [
        ("via:127.0.0.1:7002,[::1]:7003?size=2", Via, [B, Address("::1", 7003)]),
        ("dns:127.0.0.1:7002?size=2", Dns, [B]),
    ],
)
def test_members_may_be_asked(text: str, kind: type[Finder], asked: list[Address]) -> None:
    seen: list[Address] = []

    async def ask(address: Address) -> Answer:
        seen.append(address)
        return Answer("b", {"b": B})

    finder = parse_peers(text, ask=ask)
    assert isinstance(finder, kind)
    assert finder.size == 2
    assert asyncio.run(finder.look()) == {"b": B}
    assert seen == asked


def test_the_forms_and_the_examples_of_the_page_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text()
    [table] = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    (tmp_path / "group.toml").write_text(table)
    forms = re.findall(r"`peers=(.+?)`", text)
    kinds = [type(parse_peers(ast.literal_eval(form), ask=nobody)) for form in forms[:6]]
    assert kinds == [StaticList, StaticList, StaticList, Registry, Dns, Via]
    [program] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names: dict[str, type[Finder]] = {}
    exec(program, names)
    mine = names["Mine"]()
    mine.learn("b", B)
    mine.learn("c", C)
    assert run_scripted(parse_peers(mine, ask=nobody))[0].names == ("a", "b", "c")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("a=127.0.0.1:7001", "does not say who the members are: write "),
        ("registry:somewhere", "does not say who the members are: write "),
        ("ftp:host:1?size=3", "does not say who the members are: write "),
        (["127.0.0.1:7001"], "does not say who the members are: write "),
        ([7], "7 does not say who the members are: write "),
        (7, "7 does not say who the members are: write "),
        (None, "None does not say who the members are: write "),
        (b"a=h:1", "97 does not say who the members are: write "),
        (["a=h:1", "a=h:2"], "'a' is in the list twice"),
        (["a=h"], "'h' is no address"),
        ({"a": 7001}, "7001 is no address"),
        ({"a/b": "h:1"}, "'a/b' cannot be the name of a member"),
        ({}, "a group of 0 members"),
        ("via:host?size=3", "'host' is no address"),
        ("dns:orders:7001?size=0", "a group of 0 members"),
    ],
)
def test_what_cannot_be_is_one_sentence(value: object, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_peers(value, ask=nobody)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)
