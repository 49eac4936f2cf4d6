"""Back from our names of messages to those of the log that they were imported from."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from ordercast.readable import readable
from ordercast.trace.directory import read_manifests
from ordercast.trace.manifest import Manifest
from ordercast.trace.own_ids import own_ids, shown
from ordercast.trace.verdicts import Judgement

__all__ = ["broken_in_the_log", "in_the_log"]

NAMED_MAX = 12


def in_the_log(
    trace: Path,
    manifest: Manifest | None,
    messages: Iterable[str],
    called: Callable[[str], str] = str,
) -> list[str]:
    """Lines that say what the log calls these messages, which are `called` something here; none if
    it has no names of its own."""
    several = list(dict.fromkeys(messages))
    found = {} if manifest is None else own_ids(trace, manifest, several[:NAMED_MAX])
    if not found:
        return []
    here = {readable(called(name)): id for name, id in found.items()}
    width = max(map(len, here))
    return ["In the log:", *(f"  {name:{width}}  {shown(id)}" for name, id in here.items())]


def broken_in_the_log(trace: Path, judgement: Judgement) -> list[str]:
    """The same for the broken promises of one run: somebody will look for their witnesses."""
    broken = [
        verdict
        for verdict in judgement.verdicts
        if verdict.verdict != "holds" and verdict.property in judgement.promises[verdict.run]
    ]
    if not broken:
        return []
    witnesses = (verdict.witness for verdict in broken if verdict.witness)
    manifest = next((one for one in read_manifests(trace) if one.run == broken[0].run), None)
    return in_the_log(trace, manifest, [name for one in witnesses for name in one.messages])
