"""Who the members are, generation by generation."""

from __future__ import annotations

from msgspec.structs import replace

from ordercast.replica.rolls import (
    EXPELLED_MAX,
    SEATS_MAX,
    Change,
    after,
    agreed,
    charter,
    first,
)
from ordercast.runtime.discovery import Address
from ordercast.runtime.frames import Roll, Seat

ALGORITHM = ("total_consensus", "direct")


def roll(generation: int = 3, expelled: tuple[str, ...] = (), **lives: str) -> Roll:
    return Roll(generation, {n: Seat(f"h:{ord(n)}", life) for n, life in lives.items()}, expelled)


def seat(name: str, life: str) -> dict[str, Seat]:
    return {name: Seat(f"h:{ord(name)}", life)}


def test_the_first_generation_is_a_list_and_its_lives_are_its_history() -> None:
    begun = first({"b": Address("h", 2), "a": Address("h", 1)})
    assert begun == Roll(1, {"a": Seat("h:1", ""), "b": Seat("h:2", "")})
    assert list(begun.seats) == ["a", "b"]
    met = agreed(begun, {"b": "y", "a": "x"})
    assert met.seats == {"a": Seat("h:1", "x"), "b": Seat("h:2", "y")}
    again = agreed(begun, {"a": "x", "b": "z"})
    assert len({"", met.history, again.history}) == 3
    grown = after(met, Change(seat("c", "3"), {}, False))
    assert grown is not None
    assert grown.history == met.history
    assert charter(grown, ALGORITHM) != charter(replace(grown, history="other"), ALGORITHM)


def test_newcomers_come_last_and_those_who_come_back_keep_their_place() -> None:
    grown = after(roll(a="1", b="2"), Change(seat("c", "3"), {}, False))
    assert grown == roll(4, a="1", b="2", c="3")
    replaced = after(roll(a="1", b="2"), Change(seat("a", "9"), {}, False))
    assert replaced == roll(4, a="9", b="2")
    assert list(replaced.seats) == ["a", "b"]


def test_what_has_come_about_needs_no_generation() -> None:
    now = roll(a="1", b="2")
    assert after(now, Change(seat("b", "2"), {}, False)) is None
    assert after(now, Change({}, {"c": "3"}, False)) is None
    assert after(now, Change({}, {}, False)) is None


def test_a_life_is_removed_and_not_a_name() -> None:
    now = roll(a="1", b="2")
    assert after(now, Change({}, {"b": "an older one"}, False)) is None
    assert after(now, Change({}, {"b": "2"}, False)) == roll(4, a="1")
    assert after(now, Change({}, {"b": "2"}, True)) == roll(4, ("2",), a="1")


def test_whoever_was_sent_away_does_not_come_back_with_what_it_knows() -> None:
    now = roll(4, ("2",), a="1")
    assert after(now, Change(seat("b", "2"), {}, False)) is None
    assert after(now, Change(seat("b", "3"), {}, False)) == roll(5, ("2",), a="1", b="3")


def test_one_that_was_left_behind_can_be_sent_away() -> None:
    """It has no seat any more, and must not get one again."""
    assert after(roll(a="1"), Change({}, {"b": "2"}, True)) == roll(4, ("2",), a="1")


def test_somebody_stays() -> None:
    assert after(roll(a="1", b="2"), Change({}, {"a": "1", "b": "2"}, True)) is None


def test_those_who_were_sent_away_are_not_remembered_for_ever() -> None:
    many = tuple(map(str, range(EXPELLED_MAX)))
    now = roll(3, many, a="x", b="y")
    later = after(now, Change({}, {"b": "y"}, True))
    assert later is not None
    assert later.expelled == (*many[1:], "y")


def test_no_two_generations_can_be_mistaken_for_each_other() -> None:
    now = roll(a="1", b="2")
    assert charter(now, ALGORITHM) != charter(roll(4, a="1", b="2"), ALGORITHM)
    assert charter(now, ALGORITHM) != charter(roll(a="1", c="2"), ALGORITHM)
    assert charter(now, ALGORITHM).startswith("total_consensus over direct, generation 3 of 2 ")


def test_nobody_gets_a_seat_that_cannot_be_used() -> None:
    now = roll(a="1")
    for name, at in {
        "../b": Seat("h:1", "2"),
        "b": Seat("nowhere", "2"),
        "c": Seat("0.0.0.0:1", "2"),
        "d": Seat("h:1", ""),
        "e": Seat("a..b:80", "2"),
    }.items():
        assert after(now, Change({name: at}, {}, False)) is None


def test_a_group_of_replicas_does_not_grow_for_ever() -> None:
    full = Roll(3, {f"m{at}": Seat(f"h:{at + 1}", "x") for at in range(SEATS_MAX)})
    assert after(full, Change(seat("b", "2"), {}, False)) is None
    assert after(full, Change({}, {"m0": "x"}, False)) is not None
