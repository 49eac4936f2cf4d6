"""When a group is at rest: source text 003's stop rule, mended."""

from __future__ import annotations

from msgspec.structs import replace

from ordercast.runtime.rest import Counters, LinkCounters, at_rest


def member(*links: LinkCounters, finished: bool = True) -> Counters:
    return Counters(sent=1, delivered=2, held=0, held_max=0, links=links, finished=finished)


NOBODY = LinkCounters()
QUIET = LinkCounters(handed=1, received=1)
RESTING = {0: member(NOBODY, QUIET), 1: member(QUIET, NOBODY)}


def resting_with(me: int, counters: Counters) -> bool:
    look = RESTING | {me: counters}
    return at_rest(look, look)


def test_two_equal_looks_at_a_quiet_group_are_rest() -> None:
    assert at_rest(RESTING, RESTING)


def test_one_member_that_moved_between_the_looks_is_not() -> None:
    before = RESTING | {1: replace(RESTING[1], delivered=1)}
    assert not at_rest(before, RESTING)


def test_a_member_that_still_has_to_send_is_not_at_rest() -> None:
    assert not resting_with(0, member(NOBODY, QUIET, finished=False))


def test_a_protocol_that_may_yet_act_on_a_timer_is_not_at_rest() -> None:
    assert not resting_with(0, replace(RESTING[0], timers=1))


def test_a_packet_in_the_air_on_its_way_or_unacknowledged_is_not_rest() -> None:
    assert not resting_with(0, member(NOBODY, replace(QUIET, in_air=1)))
    assert not resting_with(0, member(NOBODY, replace(QUIET, handed=2)))
    assert not resting_with(0, member(NOBODY, replace(QUIET, unacknowledged=1)))


def test_having_delivered_all_is_not_rest_while_another_lacks_something() -> None:
    """The slip of 003: p0 has sent and delivered its number, and p1 still needs p0's packet."""
    p0 = member(NOBODY, LinkCounters(handed=1, received=1, unacknowledged=1))
    p1 = member(LinkCounters(handed=1), NOBODY)
    assert not at_rest({0: p0, 1: p1}, {0: p0, 1: p1})


def test_packets_to_and_from_the_dead_do_not_count() -> None:
    to_the_dead = LinkCounters(handed=5, received=2, in_air=1, unacknowledged=3)
    living = {
        0: replace(member(NOBODY, QUIET, to_the_dead), suspected=(2,)),
        1: replace(member(QUIET, NOBODY, to_the_dead), suspected=(2,)),
    }
    assert at_rest(living, living)
    assert not at_rest(living | {2: member(NOBODY, NOBODY, NOBODY)}, living)


def test_a_member_that_has_yet_to_miss_the_dead_may_still_act() -> None:
    to_the_dead = LinkCounters(handed=5)
    p0 = replace(member(NOBODY, QUIET, to_the_dead), suspected=(2,))
    p1 = member(QUIET, NOBODY, to_the_dead)
    assert not at_rest({0: p0, 1: p1}, {0: p0, 1: p1})


def test_a_member_that_suspects_the_living_may_still_act() -> None:
    assert not resting_with(0, replace(RESTING[0], suspected=(1,)))
