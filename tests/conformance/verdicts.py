"""Verdicts of two judges, side by side."""

from __future__ import annotations

from ordercast.trace.verdicts import Verdict


def essence(verdict: Verdict) -> tuple[object, ...]:
    """All but the words of its witness, which each judge has of its own."""
    witness = verdict.witness and (verdict.witness.process, verdict.witness.messages)
    return verdict.verdict, verdict.checked, verdict.violations, witness
