"""A member's TOML file: what it may say, and the sentence for each thing it may not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ordercast import Settings, UsageError
from ordercast.runtime.config import load
from ordercast.runtime.discovery import Address

GROUP = '[group]\nname = "orders"\n'
MEMBERS = '[members]\na = "127.0.0.1:7001"\nb = "127.0.0.1:7002"\n'


def written(directory: Path, text: str) -> Path:
    file = directory / "group.toml"
    file.write_text(text)
    return file


def test_little_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    file = written(tmp_path, GROUP + MEMBERS)
    config = load(file, me="a")
    assert config.group == "orders"
    assert config.join["peers"] == file
    assert (config.join["order"], config.join["reliability"]) == ("causal", None)
    assert config.join["settings"] is None
    assert (config.metrics, config.status) == (None, tmp_path / "ordercast-orders-a.status")


def test_everything_that_can_be_said(tmp_path: Path) -> None:
    text = f"""
        [group]
        name = "orders"
        order = "total"
        reliability = "best_effort"
        peers = "registry:members?size=3"
        [node]
        listen = "127.0.0.1"
        keys = "keys"
        journal = "journals/{{me}}"
        sync = "disk"
        trace = "{tmp_path}/elsewhere"
        timeout_s = 5
        metrics = 9100
        [settings]
        window_bytes = 1000
        linger_s = 0
        dead_after_s = 30
    """
    config = load(written(tmp_path, text), me="b")
    assert config.join == {
        "me": "b",
        "peers": f"registry:{tmp_path}/members?size=3",
        "order": "total",
        "reliability": "best_effort",
        "listen": "127.0.0.1",
        "keys": tmp_path / "keys",
        "insecure": False,
        "journal": tmp_path / "journals" / "b",
        "sync": "disk",
        "trace": tmp_path / "elsewhere",
        "timeout_s": 5,
        "settings": Settings(window_bytes=1000, linger_s=0, dead_after_s=30),
    }
    assert config.status == tmp_path / "journals" / "b.status"
    assert config.metrics == Address("127.0.0.1", 9100)


def test_plain_tcp_on_purpose(tmp_path: Path) -> None:
    config = load(written(tmp_path, GROUP + MEMBERS + "[node]\ninsecure = true\n"), me="a")
    assert (config.join["keys"], config.join["insecure"]) == (None, True)


def test_members_in_another_file_are_looked_for_beside_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    file = written(tmp_path, GROUP + 'peers = "members.toml"\n')
    with pytest.raises(UsageError) as raised:
        load(file, me="a")
    others = tmp_path / "members.toml"
    assert str(raised.value) == (
        f"{file}, group.peers: {others} cannot be read: No such file or directory"
    )
    others.write_text(MEMBERS)
    assert load(file, me="a").join["peers"] == others
    with pytest.raises(
        UsageError, match=r"group\.peers: .*members\.toml, \[members\]: 'x' is not one"
    ):
        load(file, me="x")


def test_without_a_runtime_directory_the_socket_is_in_one_of_this_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    status = load(written(tmp_path, GROUP + MEMBERS), me="a").status
    assert status == tmp_path / f"ordercast-{os.getuid()}" / "orders-a.status"
    assert status.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "group: this is missing"),
        ("[group]\n" + MEMBERS, "group.name: this is missing"),
        ("group = 3\n", "group: write a table [group], not the number 3"),
        ("[[group]]\n", "group: write a table [group], not a list"),
        ('node = "x"\n' + GROUP + MEMBERS, "node: write a table [node], not the text 'x'"),
        ("[group]\nname = true\n" + MEMBERS, "group.name: write text in quotes, not true"),
        (
            GROUP + "peers = 1979-05-27\n",
            "group.peers: write text in quotes, not the date 1979-05-27",
        ),
        (GROUP + 'peers = ["a", "b"]\n', "group.peers: write text in quotes, not a list"),
        (
            GROUP + 'peers = "x"\n',
            '\'x\' does not say who the members are: write "group.toml", "re',
        ),
        ('[group]\nname = "a/b"\n' + MEMBERS, "group.name: 'a/b' cannot be the name of a group"),
        (GROUP + 'order = "best"\n' + MEMBERS, "[group]: there is no order 'best'"),
        (GROUP + 'ordre = "fifo"\n' + MEMBERS, "no such key (did you mean order?); [group] may"),
        (GROUP + MEMBERS + "[nodes]\n", "no such table (did you mean node?); there are [group], "),
        (GROUP + MEMBERS + "[node]\nport = 1\n", "node.port: there is no such key"),
        (
            GROUP + MEMBERS + "[node]\njournal = 1\n",
            "node.journal: write text in quotes, not the number 1",
        ),
        (
            GROUP + MEMBERS + '[node]\nkeys = ""\n',
            "node.keys: '' is no path: name one, or leave the",
        ),
        (
            GROUP + MEMBERS + '[node]\ntrace = "\\u0000"\n',
            "node.trace: '\\x00' is no path: name one",
        ),
        (GROUP + MEMBERS + "[node]\ninsecure = 1\n", "write true or false, not the number 1"),
        (GROUP + MEMBERS + "[node]\nsync = true\n", "node.sync: write 'write' or 'disk', not true"),
        (
            GROUP + MEMBERS + '[node]\nsync = "disk"\n',
            "node.sync: without a journal nothing is kept",
        ),
        (GROUP + MEMBERS + "[node]\ntimeout_s = 00:01:00\n", "a number, not the time 00:01:00"),
        (
            GROUP + MEMBERS + "[node.timeout_s]\ns = 1\n",
            "node.timeout_s: write a number, not a table",
        ),
        (
            GROUP + MEMBERS + '[node]\nsync = "no"\n',
            "node.sync: there is no 'no'; choose 'write' or 'disk'",
        ),
        (
            GROUP + MEMBERS + '[node]\nkeys = "keys"\ninsecure = true\n',
            "node.insecure: keys are for TLS, and this is for going without: leave one of them out",
        ),
        (GROUP + MEMBERS + "[node]\ntimeout_s = 0\n", "node.timeout_s: 0 s: choose more than 0"),
        (GROUP + MEMBERS + '[node]\nmetrics = "x"\n', "node.metrics: 'x' is no address"),
        (
            GROUP + MEMBERS + "[node]\nmetrics = 1.5\n",
            "node.metrics: write text in quotes or a whole number, not the number 1.5",
        ),
        (
            GROUP + MEMBERS + "[node]\nmetrics = -1\n",
            "node.metrics: -1 is no port: choose from 1 to 65535",
        ),
        (GROUP + MEMBERS + "[settings]\nwindow = 1\n", "settings.window: there is no such key"),
        (
            GROUP + MEMBERS + '[settings]\nlinger_s = "1"\n',
            "linger_s: write a number, not the text '1'",
        ),
        (
            GROUP + MEMBERS + f'[settings]\nwindow_bytes = "{"4" * 50}"\n',
            f"settings.window_bytes: write a whole number, not the text '{'4' * 38}…",
        ),
        (
            GROUP + MEMBERS + "[settings]\nheartbeat_s = inf\n",
            "choose more than 0, and less than i",
        ),
        (GROUP + MEMBERS + "[settings]\nwindow_bytes = 0\n", "[settings]: window_bytes = 0: choo"),
        (GROUP + MEMBERS + "[settings]\nlinger_s = -1\n", "[settings]: linger_s = -1.0: choose"),
        (GROUP + MEMBERS + "[settings]\nheartbeat_s = nan\n", "[settings]: heartbeat_s = nan"),
        (
            GROUP + MEMBERS + "[settings]\nsuspect_phi = 500\n",
            "[settings]: suspect_phi = 500.0: ch",
        ),
        (GROUP, "nothing says who the members are: write a table [members], or group.peers"),
        (GROUP + 'peers = "via:x:1?size=2"\n' + MEMBERS, "both [members] and group.peers say who"),
        (GROUP + 'peers = ""\n' + MEMBERS, "both [members] and group.peers say who"),
        (GROUP + '[members]\nb = "127.0.0.1:1"\n', "[members]: 'a' is not one of b"),
        (GROUP + '[members]\na = "nowhere"\n', "members.a: 'nowhere' is no address"),
        (GROUP + "[members]\na = 7001\n", 'members.a: write "host:port" in quotes, not the n'),
        (
            GROUP + '[members]\nnode.1 = "127.0.0.1:1"\n',
            'members.node: write "host:port" in quotes, not a table; a name with a dot in it needs',
        ),
        (GROUP + '[members]\n"x y" = "127.0.0.1:1"\n', "members.\"x y\": 'x y' cannot be the name"),
        ("members = 3\n" + GROUP, "members: write a table [members], not the number 3"),
        (GROUP + 'peers = "here"\n', "group.peers: 'here' does not say who the members are"),
        (GROUP + MEMBERS + '[node]\nlisten = "1:2:3"\n', "node.listen: '1:2:3' is no address"),
        (GROUP + MEMBERS + '[node]\nlisten = "7001"\n', "node.listen: '7001' is no address"),
        ("[group\n", "is not TOML: "),
    ],
)
def test_a_mistake_is_one_sentence_with_file_and_key(
    tmp_path: Path, text: str, sentence: str
) -> None:
    file = written(tmp_path, text)
    with pytest.raises(UsageError) as raised:
        load(file, me="a")
    said = str(raised.value)
    assert said.startswith(str(file))
    assert sentence in said
    assert "\n" not in said.removesuffix("\n")


def test_a_file_as_editors_of_other_systems_write_it(tmp_path: Path) -> None:
    file = tmp_path / "group.toml"
    file.write_bytes(b"\xef\xbb\xbf" + (GROUP + MEMBERS).replace("\n", "\r\n").encode())
    assert load(file, me="a").group == "orders"
    file.write_bytes((GROUP + MEMBERS).encode("utf-16"))
    with pytest.raises(UsageError, match=r"group\.toml is not TOML: it is not UTF-8$"):
        load(file, me="a")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"gone\.toml cannot be read: No such file"):
        load(tmp_path / "gone.toml", me="a")
