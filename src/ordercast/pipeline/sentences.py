"""A finding in words: what a person reads first. No Spark here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

__all__ = ["Seen", "cycle_sentence", "sentence"]


@dataclass(frozen=True, slots=True)
class Seen:
    """A witness, and what of its run the sentence must mention.

    Of an order, the messages are origin:number and then other:later; `by` is who had them so."""

    names: Sequence[str]
    unknown: bool
    complete: bool
    process: int
    origin: int
    number: int
    position: int | None = None
    other: int | None = None
    later: int | None = None
    link: str | None = None
    missing: bool | None = None
    earlier: int | None = None
    by: int | None = None

    @property
    def message(self) -> str:
        return f"{self.origin}:{self.number}"

    @property
    def messages(self) -> tuple[str, ...]:
        return (
            (self.message,) if self.later is None else (self.message, f"{self.other}:{self.later}")
        )

    def name(self, process: int | None) -> str:
        assert process is not None
        return _name(self.names, process)

    @property
    def excuse(self) -> str:
        """Why what is not in the log may have been done all the same, or be done yet."""
        if not self.unknown:
            return ""
        return ", and the run has not come to rest" if self.complete else ", and the log has holes"


def _name(names: Sequence[str], process: int) -> str:
    return names[process] if process < len(names) else f"p{process}"


def sentence(name: str, seen: Seen) -> str:
    return _SENTENCES[name](seen)


def _duplication(seen: Seen) -> str:
    who = seen.name(seen.process)
    return f"{who} delivered {seen.message} twice (positions {seen.earlier} and {seen.position})"


def _creation(seen: Seen) -> str:
    who, sender = seen.name(seen.process), seen.name(seen.origin)
    if not seen.missing:
        return f"{who} delivered {seen.message}, which is not addressed to it"
    if not seen.unknown:
        return f"{who} delivered {seen.message}, which {sender} never sent"
    return f"{who} delivered {seen.message}, whose send is not in the log of {sender}"


def _validity(seen: Seen) -> str:
    sender = seen.name(seen.origin)
    if seen.process == seen.origin:
        return f"{sender} sent {seen.message} and never delivered it itself{seen.excuse}"
    receiver = seen.name(seen.process)
    return f"{sender} sent {seen.message} to {receiver}, which never delivered it{seen.excuse}"


def _agreement(seen: Seen) -> str:
    deliverer, debtor = seen.name(seen.other), seen.name(seen.process)
    return (
        f"{deliverer} delivered {seen.message}, but {debtor}, to which it is addressed, "
        f"never did{seen.excuse}"
    )


def _order(seen: Seen) -> str:
    m, n = seen.messages
    sender, who = seen.name(seen.other), seen.name(seen.process)
    before = {
        "sent": f"{sender} sent {m} and then {n}",
        "delivered": f"{sender} delivered {m} and then sent {n}",
        "indirect": f"{m} happened before {n}",
    }[seen.link or "sent"]
    how = f"{n} and never {m}" if seen.missing else f"{n} before {m}"
    return f"{before}, but {who} delivered {how}{seen.excuse}"


def _pairwise(seen: Seen) -> str:
    m, n = seen.messages if seen.link == "first" else seen.messages[::-1]
    one, who = seen.name(seen.by), seen.name(seen.process)
    return f"{one} delivered {m} before {n}, but {who} delivered {n} before {m}"


def _gap(seen: Seen) -> str:
    m, n = seen.messages
    ahead, who = seen.name(seen.by), seen.name(seen.process)
    how = f"{n} and never {m}" if seen.missing else f"{n} before {m}"
    return f"{ahead} delivered {m} before {n}, but {who} delivered {how}{seen.excuse}"


def cycle_sentence(
    name: str, names: Sequence[str], messages: Sequence[str], members: Sequence[int]
) -> str:
    """`members` says for each message who has it before the next one."""
    did = "had" if name == "synchronous" else "delivered"
    parts = [
        f"{_name(names, member)} {did} {m} before {n}"
        for member, m, n in zip(members, messages, [*messages[1:], messages[0]], strict=True)
    ]
    return "no one order fits: " + ", ".join(parts)


_SENTENCES: dict[str, Callable[[Seen], str]] = {
    "no_duplication": _duplication,
    "no_creation": _creation,
    "validity": _validity,
    "agreement": _agreement,
    "uniform_agreement": _agreement,
    "fifo": _order,
    "causal": _order,
    "total_pairwise": _pairwise,
    "total_gap_free": _gap,
}
