"""`ordercast keys` as a user meets it."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from ordercast.cli import main
from ordercast.runtime.keys import Credentials

PAGE = Path(__file__).parents[2] / "docs" / "security.md"


def test_it_says_what_goes_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["keys", "keys", "--group", "orders", "a", "bert"]) == 0
    said, complaints = capsys.readouterr()
    assert complaints == ""
    assert "group orders: made the group's CA in keys/ca.pem" in said
    assert "\n  a     keys/ca.pem  keys/a.pem  keys/a.key\n" in said
    assert "\n  bert  keys/ca.pem  keys/bert.pem  keys/bert.key\n" in said
    assert "Keep keys/ca.key off these hosts" in said
    assert Credentials.load("keys", group="orders", me="bert").me == "bert"


def test_json_names_every_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keys = tmp_path / "keys"
    assert main(["keys", str(keys), "--group", "orders", "a", "--json", "--days", "7"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert first["new_authority"] is True
    assert {Path(file).name for file in first["written"]} == {"ca.key", "ca.pem", "a.key", "a.pem"}
    assert main(["keys", str(keys), "--group", "orders", "b", "--json"]) == 0
    second = json.loads(capsys.readouterr().out)
    assert second["new_authority"] is False
    assert second["members"]["b"] == {
        "ca": str(keys / "ca.pem"),
        "certificate": str(keys / "b.pem"),
        "key": str(keys / "b.key"),
    }


def test_revoking_says_where_the_list_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    main(["keys", "keys", "--group", "orders", "a", "b"])
    capsys.readouterr()
    assert main(["keys", "keys", "--group", "orders", "--revoke", "b"]) == 0
    said, complaints = capsys.readouterr()
    assert complaints == ""
    assert said.startswith("group orders: revoked b; 1 on the list\nCopy keys/revoked.pem to")
    assert main(["keys", "keys", "--group", "orders", "--revoke", "a", "b", "--json"]) == 0
    done = json.loads(capsys.readouterr().out)
    assert (done["file"], done["total"], done["members"]) == ("keys/revoked.pem", 2, ["a", "b"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--group", "orders", "a"], "a.pem exists and is not overwritten"),
        (["--group", "sales", "b"], "is the CA of group 'orders', not of 'sales'"),
        (["--group", "orders", "b/c"], "'b/c' cannot be the name of a member"),
        (["--group", "orders", "b", "--days", "-1"], "-1 days: choose from 1"),
        (["--group", "orders", "--revoke", "b"], "there is no file"),
        (["--group", "orders", "--revoke", "a", "--days", "9"], "--days is for new certificates"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    main(["keys", str(tmp_path), "--group", "orders", "a"])
    capsys.readouterr()
    assert main(["keys", str(tmp_path), *arguments]) == 2
    out, complaint = capsys.readouterr()
    assert out == ""
    assert complaint.startswith("ordercast keys: ")
    assert said in complaint
    assert complaint.count("\n") == 1


@pytest.mark.parametrize("arguments", [["a"], ["--group", "orders"], ["--group", "x", "--days"]])
def test_missing_arguments_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["keys", str(tmp_path), *arguments])
    assert ended.value.code == 2
    assert "(see 'ordercast keys --help')" in capsys.readouterr().err


def test_a_directory_that_cannot_be_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "keys"
    file.write_text("")
    for directory in (file, file / "deeper"):
        assert main(["keys", str(directory), "--group", "orders", "a"]) == 2
        assert capsys.readouterr().err == (
            f"ordercast keys: no keys can be written to {directory}: {file} is a file: name a "
            "directory\n"
        )
    assert main(["keys", "/proc/keys-of", "--group", "orders", "a"]) == 2
    assert capsys.readouterr().err == (
        "ordercast keys: no keys can be written to /proc/keys-of: No such file or directory: name "
        "another directory\n"
    )


def test_a_broken_list_is_told_without_the_words_of_a_library(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["keys", str(tmp_path), "--group", "orders", "a"])
    (tmp_path / "revoked.pem").write_text("junk")
    capsys.readouterr()
    assert main(["keys", str(tmp_path), "--group", "orders", "--revoke", "a"]) == 2
    assert capsys.readouterr().err == (
        f"ordercast keys: {tmp_path}/revoked.pem is no list of revoked certificates: put the last "
        "one there again; or move it away, and revoke all that were on it anew\n"
    )


def test_help_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["keys", "--help"])
    assert "ordercast keys keys --group orders a b c" in capsys.readouterr().out


def test_the_commands_and_the_program_of_the_page_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text()
    commands = re.findall(r"^    ordercast (keys .+)$", text, re.MULTILINE)
    assert len(commands) == 3
    for command in commands:
        assert main(shlex.split(command)) == 0
    [program] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(program, {})
    assert "+00:00" in capsys.readouterr().out
