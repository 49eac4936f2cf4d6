"""What a watch says, from rows to objects. No Spark here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from ordercast.trace.news import Flaw, News, Said, Status
from ordercast.trace.verdicts import Verdict, Witness

__all__ = ["news_of"]


def news_of(rows: Iterable[dict[str, Any]], standing: dict[str, dict[str, Verdict]]) -> list[News]:
    """in: `WATCHED`, as dictionaries; standing: by run and property the last verdict of which
    everything is known, which is brought up to date"""
    found: list[News] = []
    for row in sorted(rows, key=lambda row: (row["run"], _ORDER.index(row["kind"]))):
        run, at = row["run"], row["time"]
        if row["kind"] == "flaw":
            found.append(Flaw(run, at, row["flaw"]))
            continue
        mine = standing.setdefault(run, {})
        if row["kind"] == "verdict":
            fields = row["verdict"]
            since = fields.pop("since")
            verdict = Verdict(run=run, **(fields | {"witness": _witness(fields["witness"])}))
            mine[verdict.property] = verdict
            found.append(Said(at, verdict, since))
            continue
        for fields in row["status"].pop("standing"):
            before = mine.get(fields["property"])
            witness = before.witness if before and before.verdict == fields["verdict"] else None
            mine[fields["property"]] = Verdict(run=run, **fields, witness=witness)
        told = row["status"] | {"run": run, "time": at, "standing": tuple(mine.values())}
        found.append(msgspec.convert(told, Status))
    return found


_ORDER = ("flaw", "verdict", "status")


def _witness(fields: dict[str, Any] | None) -> Witness | None:
    if fields is None:
        return None
    process = -1 if fields["process"] is None else fields["process"]
    return Witness(process, tuple(fields["messages"]), fields["sentence"])
