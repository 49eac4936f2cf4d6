"""The catalog's formulas against what is really sent, counted outside the algorithms."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from benchmarks.meter import Trial, busy

from ordercast.protocols import catalog
from ordercast.protocols.catalog import Amount
from ordercast.simulator.plan import Network

COMBINATIONS = catalog.combinations()
TO_SUBSETS = [
    (ordering, dissemination)
    for ordering, dissemination in COMBINATIONS
    if catalog.ORDERINGS[ordering].destinations == "any" and dissemination == "direct"
]
SIZES = (3, 5, 8)
DELAY_US = 20_000
EVEN = Network(delay_us=(DELAY_US, DELAY_US))
UNEVEN = Network(delay_us=(0, DELAY_US))


class Spent(NamedTuple):
    packets: int
    payload_copies: int
    delays: int
    """Until the last of the others has delivered it."""


def spend(trial: Trial, process: int, to: tuple[int, ...] | None = None) -> Spent:
    """One message, until rest."""
    bill = trial.bill
    packets, copies = bill.packets, bill.payload_copies
    bill.latencies_us.clear()
    trial.send(process, to)
    trial.rest()
    delays = round(max(bill.latencies_us, default=0) / DELAY_US)
    return Spent(bill.packets - packets, bill.payload_copies - copies, delays)


def fits(amount: Amount | None, measured: float, n: int, k: int | None = None) -> bool:
    if amount is None:
        return True
    return measured == amount.of(n, k) if amount.exact else 0 < measured <= amount.of(n, k)


@pytest.mark.parametrize("network", [EVEN, UNEVEN], ids=["even", "uneven"])
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(("ordering", "dissemination"), COMBINATIONS)
def test_one_message_at_a_time(ordering: str, dissemination: str, n: int, network: Network) -> None:
    cost = catalog.cost(ordering, dissemination)
    trial = Trial(ordering, dissemination, n, network)
    spent = [spend(trial, process) for process in [*range(n)] * 2]
    for one in spent:
        assert fits(cost.packets, one.packets, n)
        assert fits(cost.payload_copies, one.payload_copies, n)
        if network is EVEN:
            assert fits(cost.delays, one.delays, n)
    if network is EVEN and dissemination != "gossip":
        # A bound that nothing comes near would say nothing.
        assert max(one.packets for one in spent) == cost.packets.of(n)
        assert max(one.payload_copies for one in spent) == cost.payload_copies.of(n)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(("ordering", "dissemination"), COMBINATIONS)
def test_when_everyone_sends_it_costs_no_more(ordering: str, dissemination: str, n: int) -> None:
    cost = catalog.cost(ordering, dissemination)
    bill = busy(ordering, dissemination, n, messages=20, network=UNEVEN)
    assert bill.messages == 20 * n
    assert fits(cost.packets, bill.packets / bill.messages, n)
    assert fits(cost.payload_copies, bill.payload_copies / bill.messages, n)
    if dissemination == "gossip":
        # No promise, but what "about 2n" is to mean.
        assert bill.payload_copies / bill.messages < 3 * n


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(("ordering", "dissemination"), COMBINATIONS)
def test_counters_beside_a_message(ordering: str, dissemination: str, n: int) -> None:
    upper = catalog.ORDERINGS[ordering].counters
    lower = catalog.DISSEMINATIONS[dissemination].counters
    most = max(busy(ordering, dissemination, n, messages=10, network=UNEVEN).counters)
    assert most <= upper.of(n) + lower.of(n)
    if upper.exact and lower.exact:
        assert most == upper.of(n) + lower.of(n)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(("ordering", "dissemination"), TO_SUBSETS)
def test_messages_to_some(ordering: str, dissemination: str, n: int) -> None:
    cost = catalog.cost(ordering, dissemination)
    trial = Trial(ordering, dissemination, n, UNEVEN)
    for process in range(n):
        for to in [((process + 1) % n,), (0, n - 1), tuple(range(n))]:
            k = len(set(to) - {process})
            spent = spend(trial, process, to)
            assert fits(cost.packets, spent.packets, n, k)
            assert fits(cost.payload_copies, spent.payload_copies, n, k)


def test_a_rendezvous_takes_two_packets_downwards_and_three_upwards() -> None:
    trial = Trial("synchronous", "direct", 3, EVEN)
    assert spend(trial, 2, (0,)) == Spent(packets=2, payload_copies=1, delays=1)
    assert spend(trial, 0, (2,)) == Spent(packets=3, payload_copies=1, delays=3)
    assert spend(trial, 1, (1,)) == Spent(packets=0, payload_copies=0, delays=0)


@pytest.mark.parametrize(
    ("formula", "text", "value"),
    [
        ("3*(n-1)", "3(n-1)", 21),
        ("(n-1)**2", "(n-1)²", 49),
        ("n*(n-1)", "n(n-1)", 56),
        ("3*k", "3k", 21),
    ],
)
def test_formulas_read_like_a_textbook(formula: str, text: str, value: int) -> None:
    amount = Amount(formula, exact=False)
    assert (amount.text, str(amount), amount.of(8)) == (text, f"at most {text}", value)


def test_the_words_for_people_name_the_formulas() -> None:
    for upper in catalog.ORDERINGS.values():
        amount = upper.own.packets if upper.own else upper.counters
        assert upper.cost == "nothing" if amount.formula == "0" else amount.text in upper.cost
    for lower in catalog.DISSEMINATIONS.values():
        assert str(lower.carriage.packets) in lower.cost
