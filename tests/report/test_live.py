"""The page of a live run in a real browser, with real processes behind its buttons."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ordercast.trace import Trace
from tests.cli.live_run import LiveRun, live_run
from tests.report.chromium import Chromium, Tab

LATEST_FIT = """(() => {
  const told = document.querySelector('#sampling').innerText;
  const every = told.includes('second') ? 2 : Number(told.match(/\\d+/)[0]);
  const latest = [...document.querySelectorAll('.arrow')].slice(-50);
  return latest.every(arrow => Number(arrow.dataset.message.split(':')[1]) % every === 0);
})()"""
SIZE = {"width": 1300, "height": 1200}


def card(process: int) -> str:
    return f'.member[data-process="{process}"]'


def button(process: int, name: str) -> str:
    return f'{card(process)} button[aria-label="{name} p{process}"]:not(:disabled)'


def wait_for(tab: Tab, selector: str) -> None:
    tab.wait(f"document.querySelector({selector!r}) !== null")


def press(tab: Tab, selector: str) -> None:
    wait_for(tab, selector)
    tab.click(selector)


def text(tab: Tab, selector: str) -> Any:
    return tab.js(f"document.querySelector({selector!r}).innerText")


def wait_for_state(tab: Tab, process: int, state: str) -> None:
    tab.wait(f"document.querySelector('{card(process)} .state').innerText === '{state}'")


def pids(command: LiveRun) -> set[int]:
    pid = command.process.pid
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return {int(child) for child in listed.split()}


@pytest.mark.timeout(280)
def test_a_person_kills_restarts_cuts_off_and_heals_and_gets_the_verdict(
    browser: Chromium, tmp_path: Path
) -> None:
    run = ("--processes", "3", "--dissemination", "majority_acks", "--interval", "200")
    with live_run(tmp_path, *run) as command:
        tab = browser.open(command.address, **SIZE)
        assert tab.js("location.search") == "", "the token is gone from the address"

        # Messages flow: from each process to each other.
        tab.wait("new Set([...document.querySelectorAll('.arrow')].map(a => "
                 "a.dataset.message.split(':')[0] + a.dataset.to)).size === 6")  # fmt: skip
        tab.wait("document.querySelectorAll('.mark.deliver').length > 10")
        assert tab.js("document.querySelectorAll('.mark.crash').length") == 0

        # A kill kills.
        before = pids(command)
        assert len(before) == 3
        press(tab, button(1, "Kill"))
        wait_for_state(tab, 1, "down")
        wait_for(tab, '.mark.crash[data-process="1"]')
        tab.wait(f"document.querySelector('{card(1)} .suspected').innerText.includes('p0, p2')")
        assert len(pids(command)) == 2
        assert "p1 killed" in text(tab, "#happened")
        assert tab.js(f"document.querySelector('{card(1)} button').disabled"), "no pausing the dead"

        # A restart brings it back, and it goes on sending.
        sent = int(text(tab, f"{card(1)} [data-count=sent]"))
        press(tab, button(1, "Restart"))
        wait_for_state(tab, 1, "running")
        wait_for(tab, '.mark.recover[data-process="1"]')
        assert len(pids(command) - before) == 1
        tab.wait(
            f"Number(document.querySelector('{card(1)} [data-count=sent]').innerText) > {sent}"
        )

        # Cut off, it holds its own messages and says whose word it needs; the others suspect it.
        press(tab, button(2, "Cut off"))
        wait_for(tab, f"{card(2)} .why .long")
        assert "waits for word from" in text(tab, f"{card(2)} .why")
        tab.wait(f"document.querySelector('{card(2)} .suspected').innerText.includes('p0, p1')")
        tab.wait("document.querySelectorAll('.hold[data-process=\"2\"] .bar').length > 2")
        assert tab.js("document.querySelector('.shade.severed') !== null")

        # Paused, it is not running; and so the group cannot finish.
        press(tab, button(0, "Pause"))
        wait_for_state(tab, 0, "paused")
        press(tab, "[data-act=finish]:not(:disabled)")
        tab.wait("!document.querySelector('#trouble').hidden")
        assert text(tab, "#trouble p") == (
            "The group cannot come to rest: p2 is cut off, p0 is paused."
        )
        focus = tab.js("document.activeElement.innerText")
        assert focus == "Heal and finish", "whoever uses the keyboard is there already"
        press(tab, "#trouble .dismiss")
        assert tab.js("document.querySelector('#trouble').hidden")

        # Healed, it drains.
        press(tab, "[data-act=heal]")
        wait_for_state(tab, 0, "running")
        tab.wait(f"document.querySelector('{card(2)} .severed').hidden")
        tab.wait(f"!document.querySelector('{card(2)} .why .long')")

        # With the keyboard: the last word.
        tab.js("document.querySelector('[data-act=finish]').focus()")
        tab.press("Enter")
        tab.wait("!document.querySelector('#verdict').hidden")
        assert "Causal order held" in text(tab, "#verdict .headline")
        assert tab.js("document.querySelectorAll('#verdict .ladder li').length") == 4
        assert tab.js("document.activeElement.id") == "verdict"
        code, out = command.ends()
        assert tab.complaints() == []
        here = command.address.partition("?")[0]
        assert {url.partition("?")[0] for url in tab.requests()} == {
            here, f"{here}events", f"{here}act",
        }  # fmt: skip
    assert code == 0, out
    assert "p1 crashed" not in out, "it was killed on purpose"
    [directory] = (tmp_path / "runs").iterdir()
    [trace] = Trace.load(directory)
    assert trace.manifest.quiesced
    told = [each["what"] for each in trace.manifest.extra["happened"]]
    done = [
        *("p1 killed", "p1 back", "p2 cut off", "p0 paused", "p2 reconnected", "p0 goes on"),
        "sending ends",
    ]
    assert [what for what in told if what in done] == done
    assert all(what in out for what in done)
    kinds = [event.kind for event in trace.events if event.process == 1]
    assert kinds.count("crash") == kinds.count("recover") == 1
    sends = [e.number for e in trace.events if e.process == 1 and e.kind == "send"]
    assert sends == list(range(1, len(sends) + 1)), "it went on where it was"


@pytest.mark.timeout(120)
def test_more_than_can_be_drawn_is_sampled_and_the_page_says_so(
    browser: Chromium, tmp_path: Path
) -> None:
    with live_run(
        tmp_path, "--processes", "4", "--interval", "5", "--faults", "loss:0%"
    ) as command:
        tab = browser.open(command.address, dark=True, **SIZE)
        tab.wait("document.querySelector('#sampling').innerText.includes('only each')")
        tab.wait("document.querySelectorAll('.arrow').length > 100")
        assert tab.js("document.querySelectorAll('.arrow').length") < 4000
        tab.wait(LATEST_FIT)
        assert tab.complaints() == []
        command.interrupt()
        tab.wait("document.querySelector('#phase').innerText === 'The run was interrupted.'")
        assert tab.js("document.body.classList.contains('over')")
        command.ends()
        assert tab.complaints() == []
