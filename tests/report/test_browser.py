"""The page in a real browser: it opens without complaint, shows what it says, and asks nobody."""

from __future__ import annotations

import base64
import struct
from pathlib import Path

import pytest

from ordercast.report import render, write
from ordercast.trace import Trace
from tests.report.builders import QUESTION, broken, judgement_on, random_run, run
from tests.report.chromium import Chromium, Tab
from tests.report.test_diagram import expected


@pytest.fixture
def page(tmp_path: Path) -> Path:
    traces = [run(QUESTION)]
    return write(judgement_on(traces, broken()), traces, tmp_path / "report.html")


def opened(browser: Chromium, path: Path, trace: Trace, *, dark: bool = False) -> Tab:
    path.write_text(render(judgement_on([trace], broken()), [trace]), encoding="utf-8")
    return browser.open(path, dark=dark)


def test_it_opens_without_complaint_and_asks_nobody(browser: Chromium, page: Path) -> None:
    tab = browser.open(page)
    assert "Causal order was violated in run r1" in tab.js("document.body.innerText")
    assert tab.js("document.querySelectorAll('svg.diagram').length") == 2
    tab.click(".full .mark.send")
    tab.press("Escape")
    assert tab.complaints() == []
    assert tab.requests() == [page.as_uri()]


def test_no_other_script_runs(browser: Chromium, page: Path) -> None:
    """What the policy allows is one script, by its hash: nothing that gets in can run."""
    evil = "<script>document.title = 'taken'</script><b onclick=\"document.title = 'taken'\">x</b>"
    page.write_text(page.read_text().replace("</body>", f"{evil}</body>"))
    tab = browser.open(page)
    tab.js("document.querySelector('b[onclick]').click()")
    assert "taken" not in tab.js("document.title")
    assert len(tab.complaints()) >= 2


@pytest.mark.parametrize("seed", range(3))
def test_as_many_arrows_as_the_trace_has(browser: Chromium, tmp_path: Path, seed: int) -> None:
    trace = random_run(seed, size=3 + seed, messages=20, crash=seed == 2)
    tab = opened(browser, tmp_path / "page.html", trace)
    kinds = "window.dispatchEvent(new Event('beforeprint')); "  # Wakes every strip.
    kinds += "Object.fromEntries(['arrives', 'never'].map(kind => [kind, new Set("
    kinds += "[...document.querySelectorAll(`.full .arrow.${kind}`)]"
    kinds += ".map(a => a.dataset.message + ' ' + a.dataset.process)).size]))"
    counts = expected(trace)
    assert tab.js(kinds) == {"arrives": counts["arrives"], "never": counts["never"]}


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_it_can_be_photographed(browser: Chromium, page: Path, tmp_path: Path, dark: bool) -> None:
    tab = browser.open(page, dark=dark, height=1600)
    picture = tab.photograph(tmp_path / "page.png")
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", picture[16:24]) == (1280, 1600)
    assert len(picture) > 30_000  # A blank page is a tenth of this.


CONTRAST = """(() => {
  const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = (c) => c <= 10.3 ? c / 3294.6 : ((c / 255 + 0.055) / 1.055) ** 2.4;
  const luminance = ([r, g, b]) => 0.2126 * light(r) + 0.7152 * light(g) + 0.0722 * light(b);
  const backdrop = (e) => {
    for (; e; e = e.parentElement) {
      const found = rgb(getComputedStyle(e).backgroundColor);
      if (found.length < 4 || found[3] === 1) return found;
    }
    return [255, 255, 255];
  };
  const bad = [];
  for (const e of document.querySelectorAll('body *')) {
    const words = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    const style = getComputedStyle(e);
    if (!words || !e.getClientRects().length || e.matches('script, style, title, desc')) continue;
    const ink = luminance(rgb(e.ownerSVGElement ? style.fill : style.color));
    const paper = luminance(backdrop(e));
    const ratio = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
    if (ratio < 4.5) bad.push([e.textContent.slice(0, 30), e.getAttribute('class'), ratio]);
  }
  return bad;
})()"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_word_stands_out_as_wcag_asks(browser: Chromium, tmp_path: Path, dark: bool) -> None:
    tab = opened(browser, tmp_path / "page.html", random_run(1, crash=True), dark=dark)
    tab.js("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert tab.js(CONTRAST) == []


def test_a_long_run_is_printed_in_strips(browser: Chromium, tmp_path: Path) -> None:
    tab = opened(browser, tmp_path / "page.html", random_run(1, size=4, messages=30))
    tab.js(
        "window.addEventListener('afterprint', () => {}); window.printed = 0;"
        "window.addEventListener('beforeprint', () => window.printed ="
        " document.querySelectorAll('.full .strip > svg.diagram').length)"
    )
    paper = base64.b64decode(tab.call("Page.printToPDF")["data"])
    assert paper[:5] == b"%PDF-"
    assert tab.js("printed") == tab.js("document.querySelectorAll('.full .strip').length") > 3


def test_on_a_narrow_screen_every_verdict_is_whole(browser: Chromium, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    trace = run(QUESTION)
    page.write_text(render(judgement_on([trace], broken()), [trace]), encoding="utf-8")
    tab = browser.open(page, width=420)
    inside = "document.querySelector('table.verdicts').parentElement"
    assert tab.js(f"{inside}.scrollWidth <= {inside}.clientWidth")
    words = "[...document.querySelectorAll('.verdicts caption, .verdicts td.sentence:not(:empty)')]"
    edges = tab.js(f"{words}.map(e => e.getBoundingClientRect().right)")
    assert len(edges) > 1
    assert max(edges) <= 420
