"""Fault plans as people write them: what is understood, and one sentence for each mistake."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.errors import UsageError
from ordercast.runtime.faults import GRAMMAR, Faults, parse_faults
from ordercast.runtime.faults.kinds import Delay, Kill, Loss, Partition, Pause, Slow, Span, written
from ordercast.runtime.plan import Plan
from ordercast.runtime.weather import Weather

S = 1_000_000
PROCESSES = st.integers(0, 70)
TIMES_US = st.one_of(
    st.integers(0, 10 * S), st.integers(0, 10_000).map(lambda ms: 1000 * ms), st.just(86_400 * S)
)
LENGTHS_US = TIMES_US.filter(bool)
ENDING = st.builds(Span, TIMES_US, LENGTHS_US)
ENDLESS = st.builds(Span, TIMES_US)
LINKS = st.lists(PROCESSES, min_size=2, max_size=2, unique=True).map(tuple)


@st.composite
def partitions(draw: st.DrawFn) -> Partition:
    processes = draw(st.lists(PROCESSES, min_size=2, max_size=6, unique=True))
    cut = draw(st.integers(1, len(processes) - 1))
    return Partition((tuple(processes[:cut]), tuple(processes[cut:])), draw(ENDING))


@st.composite
def delays(draw: st.DrawFn) -> Delay:
    mean_us = draw(TIMES_US)
    jitter_us = draw(st.integers(0, mean_us))
    return Delay(mean_us, jitter_us, draw(st.none() | LINKS), draw(ENDING | ENDLESS))


FAULTS = st.one_of(
    st.builds(Kill, PROCESSES, ENDING | ENDLESS),
    st.builds(Pause, PROCESSES, ENDING),
    st.builds(Slow, PROCESSES, ENDING),
    partitions(),
    delays(),
    st.builds(Loss, st.integers(0, 500_000), st.none() | LINKS, ENDING | ENDLESS),
)


@given(st.lists(FAULTS, max_size=6).map(lambda faults: Faults(tuple(faults))))
def test_a_plan_is_printed_as_it_is_read(plan: Faults) -> None:
    assert parse_faults(str(plan)) == plan
    spaced = str(plan).replace("±", "+-").replace(",", " , ")
    assert parse_faults(f" {spaced} ") == plan


@given(st.text(alphabet="kilpausedyo:@+-±|,>=%0123456789.ms ", max_size=30))
def test_any_text_is_a_plan_or_gets_one_sentence(text: str) -> None:
    try:
        plan = parse_faults(text)
    except UsageError as error:
        said = str(error)
    else:
        assert parse_faults(str(plan)) == plan
        return
    assert said.startswith("the fault plan, character ")
    assert "; write " in said
    assert "\n" not in said


def test_the_plan_of_the_handbook() -> None:
    text = "kill:1@2s,pause:2@1s+500ms,partition:0|1,2@3s+1s,delay:20ms±10ms,loss:1%"
    plan = parse_faults(text)
    assert plan.faults == (
        Kill(1, Span(2 * S)),
        Pause(2, Span(S, S // 2)),
        Partition(((0,), (1, 2)), Span(3 * S, S)),
        Delay(20_000, 10_000),
        Loss(10_000),
    )
    assert str(plan) == text
    assert (plan.fatal, plan.restarts, plan.of_the_network) == ({1}, False, True)
    assert plan.end_us == 4 * S
    assert parse_faults("kill:1@2s+1.5s, slow:0@0s+10us").restarts
    assert not parse_faults("kill:1@2s,pause:0@1s+1s").of_the_network
    assert not parse_faults("  ")


def test_what_simulations_call_it_is_understood() -> None:
    plan = parse_faults("crash:1@2s,delay:10ms..30ms,crash:0@1s+1s,delay:0>1=0ms..5ms@1s+2s")
    assert str(plan) == "kill:1@2s,delay:20ms±10ms,kill:0@1s+1s,delay:0>1=2500us±2500us@1s+2s"


def test_what_stands_in_the_help_is_understood() -> None:
    for form in GRAMMAR:
        assert parse_faults(form.replace("P@", "1@").replace("TIME", "2s").replace("LENGTH", "1s"))


@pytest.mark.parametrize(
    ("us", "text"), [(0, "0s"), (1, "1us"), (1500, "1500us"), (2000, "2ms"), (60 * S, "60s")]
)
def test_times_are_written_without_fractions(us: int, text: str) -> None:
    assert written(us) == text


@pytest.mark.parametrize(
    ("text", "character", "where", "what", "instead"),
    [
        ("boom:1@2s", 1, "'boom:1@2s'", "there is no fault 'boom'", "one of kill, pause, slow"),
        ("kill:1@2s,7", 11, "'7'", "the name of a fault belongs here", "one of kill"),
        ("kill:1@2s,", 11, "at its end", "the name of a fault belongs here", "one of kill"),
        ("kill 1@2s", 5, "' 1@2s'", "a ':' belongs after 'kill'", "kill:1@2s"),
        ("kill:one@2s", 6, "'one@2s'", "the number of a process belongs here", "kill:1@2s"),
        ("kill:1", 7, "after 'kill:1'", "a time with '@' in front belongs here", "kill:1@2s"),
        ("kill:1@", 8, "at its end", "a time belongs here", "kill:1@2s"),
        ("kill:1@2", 8, "'2'", "2 of what? a time has a unit", "kill:1@2s"),
        ("kill:1@2m", 8, "'2m'", "'m' is no unit of time (us, ms, s)", "kill:1@2s"),
        ("kill:1@0.5us", 8, "'0.5us'", "nothing shorter than a microsecond", "kill:1@2s"),
        ("kill:1@100000s", 8, "'100000s'", "longer than a day", "kill:1@2s"),
        ("kill:1@2s+0ms", 11, "'0ms'", "it has to last longer than no time", "kill:1@2s"),
        ("kill:1@2s;loss:1%", 10, "';loss:1%'", "a comma comes before the next", "kill:1@2s"),
        ("pause:2@1s", 11, "at its end", "how long is it to last?", "pause:2@1s+500ms"),
        ("slow:2@1s,loss:1%", 10, "',loss:1%'", "how long is it to last?", "slow:2@1s+500ms"),
        ("partition:0,1@1s+1s", 14, "'@1s+1s'", "parted from whom?", "partition:0|1,2@3s+1s"),
        ("partition:0|1,0@1s+1s", 15, "'0@1s+1s'", "process 0 is on a side already", "partition:"),
        ("partition:0|@1s+1s", 13, "'@1s+1s'", "the number of a process", "partition:0|1,2"),
        ("delay:20", 7, "'20'", "20 of what?", "delay:20ms±10ms"),
        ("delay:5ms±10ms", 10, "'±10ms'", "give or take 10ms is more than", "delay:20ms±10ms"),
        ("delay:0>0=5ms", 7, "'0>0=5ms'", "process 0 has no link to itself", "delay:0>1=20ms"),
        ("delay:0>1:5ms", 10, "':5ms'", "a '=' belongs between the link", "delay:0>1=20ms"),
        ("loss:1", 6, "'1'", "a share in percent belongs here", "loss:1%"),
        ("loss:80%", 6, "'80%'", "more than 50% are lost", "loss:1%"),
        ("delay:30ms..10ms", 11, "'..10ms'", "the shorter time comes first", "delay:20ms±10ms"),
        ("crash:1#3", 8, "'#3'", "only a simulation can count what a process sends", "kill:1@2s"),
        ("loss:1%,duplicate:2%", 9, "'duplicate:2%'", "connections bring nothing twice", "one of"),
        ("fifo", 1, "'fifo'", "connections keep their order anyway", "one of kill, pause"),
        ("loss:0.00001%", 6, "'0.00001%'", "up to four digits after the point", "loss:1%"),
    ],
)
def test_each_mistake_gets_its_own_sentence(
    text: str, character: int, where: str, what: str, instead: str
) -> None:
    with pytest.raises(UsageError) as caught:
        parse_faults(text)
    said = str(caught.value)
    place, _, advice = said.partition("; write ")
    assert place.startswith(f"the fault plan, character {character}, at ")
    assert where in place
    assert what in place
    assert instead in advice


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("kill:3@1s", "names process 3: in a group of 3 they are numbered from 0 to 2"),
        ("partition:0|1,7@1s+1s", "names process 7"),
        ("loss:0>5=1%", "names process 5"),
        ("kill:1@1s,pause:1@2s+1s", "after 'kill:1@1s' process 1 is dead for good"),
        ("pause:1@2s+1s,kill:1@1s+1500ms", "'pause:1@2s+1s' begins before 'kill:1@1s+1500ms'"),
        ("pause:1@70s+1s", "over after 71 s, and the run is given up after 60 s"),
    ],
)
def test_what_cannot_be_in_this_run(text: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=re.escape(sentence)):
        Plan(run="r", faults=parse_faults(text)).check()


def test_who_comes_back_needs_packets_in_order() -> None:
    plan = Plan(run="r", faults=parse_faults("kill:1@1s+1s"), weather=Weather(delay_ms=(0, 5)))
    with pytest.raises(UsageError, match="write delay:15ms±15ms among the faults instead"):
        plan.check()
    Plan(run="r", faults=parse_faults("kill:1@1s"), weather=Weather(delay_ms=(0, 5))).check()
