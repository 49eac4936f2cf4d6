"""The guide's programs run, and the TOML files of the pages are good."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

import ordercast
from ordercast.cli import parser
from ordercast.runtime.config import load
from tests.runtime.test_join import addresses

DOCS = Path(__file__).parents[2] / "docs"
API = (DOCS / "api.md").read_text()
NODE = (DOCS / "node.md").read_text()


@pytest.mark.timeout(60)
def test_the_program_of_the_guide(capsys: pytest.CaptureFixture[str]) -> None:
    [program] = re.findall(r"```python\n(.*?)```", API, re.DOTALL)
    names: dict[str, object] = {}
    exec(program, names)
    peers = names["PEERS"] = addresses("a", "b", "c")

    async def run() -> None:
        main = names["main"]
        assert callable(main)
        await asyncio.gather(*(main(me) for me in peers))

    asyncio.run(run())
    said = capsys.readouterr().out.splitlines()
    expected = [f"{me} got {other}:1 hello from {other}" for me in peers for other in peers]
    assert sorted(said) == sorted(expected)


def test_the_guide_lists_every_setting_and_every_argument() -> None:
    settings = API.partition("## Settings")[2].partition("## Errors")[0]
    for field in ordercast.Settings.__struct_fields__:
        assert f"`{field}`" in settings
    arguments = API.partition("| argument |")[2].partition("`group.algorithm`")[0]
    for name in ordercast.join.__wrapped__.__kwdefaults__:  # type: ignore[attr-defined]
        assert f"`{name}`" in arguments


def test_the_guide_lists_every_error() -> None:
    errors = API.partition("## Errors")[2]
    for name in ("UsageError", "DiscoveryError", "JournalError", "SetupError"):
        assert f"`{name}`" in errors
        assert issubclass(getattr(ordercast, name), ordercast.OrdercastError)


def test_the_file_and_the_commands_of_the_page_about_node(tmp_path: Path) -> None:
    [text] = re.findall(r"```toml\n(.*?)```", NODE, re.DOTALL)
    file = tmp_path / "group.toml"
    file.write_text(text)
    config = load(file, me="b")
    assert config.join["journal"] == tmp_path / "journals" / "b"
    assert config.status == tmp_path / "journals" / "b.status"
    commands = re.findall(r"^    ordercast (.+)$", NODE, re.MULTILINE)
    assert len(commands) == 3
    for command in commands:
        parser().parse_args(command.split())


def test_the_page_about_node_lists_every_key() -> None:
    table = NODE.partition("| `[node]` |")[2].partition("`[settings]` has")[0]
    from ordercast.runtime.config import _NodeTable

    for key in _NodeTable.__struct_fields__:
        assert f"`{key}`" in table
