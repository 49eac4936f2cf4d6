"""The page about replicas: its program runs, and it tells of every argument and error."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

import ordercast
from tests.runtime.test_join import addresses

PAGE = (Path(__file__).parents[2] / "docs" / "replicas.md").read_text()


@pytest.mark.timeout(60)
def test_the_program_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    [program] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, object] = {}
    exec(program, names)
    peers = names["FOUNDERS"] = addresses("a", "b", "c")
    monkeypatch.chdir(tmp_path)

    async def run() -> None:
        main = names["main"]
        assert callable(main)
        await asyncio.gather(*(main(me) for me in peers))

    asyncio.run(run())
    said = capsys.readouterr().out.splitlines()
    paid = sorted(int(line.split()[-1]) for line in said if "pays in" in line)
    assert paid == [10, 20, 30]
    assert sorted(line for line in said if "takes out" in line) == [
        f"{me} takes out: {me} has only 0" for me in peers
    ]
    assert sorted(line for line in said if "sees" in line) == [
        f"{me} sees {{'alice': 30}}" for me in peers
    ]


def test_the_page_lists_what_join_does_not_have() -> None:
    def arguments(function: object) -> set[str]:
        return set(function.__wrapped__.__kwdefaults__)  # type: ignore[attr-defined]

    for name in arguments(ordercast.replicate) - arguments(ordercast.join):
        assert f"| `{name}` |" in PAGE
    without = arguments(ordercast.join) - arguments(ordercast.replicate)
    assert without == {"order", "reliability", "replay_from"}
    for name in without:
        assert f"`{name}`" in PAGE


def test_the_page_tells_of_every_call() -> None:
    calls = {name for name in vars(ordercast.Replica) if not name.startswith("_")}
    for name in calls:
        assert f"`replica.{name}" in PAGE or f"`await replica.{name}" in PAGE, name
