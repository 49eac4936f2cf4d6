"""A real Chromium without a window, driven over a pipe with its own protocol (DevTools)."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from select import select
from time import monotonic, sleep
from typing import Any

__all__ = ["FOUND", "WHY_NOT", "Chromium", "Tab", "chromium"]

FOUND = shutil.which("chromium") or shutil.which("chromium-browser")
WHY_NOT = (
    "no chromium on this machine: NOBODY HAS LOOKED AT THE PAGES "
    "(make test installs it for root on Debian; else apt-get install chromium)"
)
PATIENCE_S = 120.0
LOOK_S = 0.03
"""Between two looks at a page: one that is asked all the time has none left to draw."""
KEYS = {"Enter": 13, "Escape": 27, "End": 35, "Home": 36} | {
    f"Arrow{name}": 37 + index for index, name in enumerate(("Left", "Up", "Right", "Down"))
}
QUIET = ("background-networking", "component-update", "sync", "gpu", "extensions", "dev-shm-usage")
# Chromium reads commands from descriptor 3 and answers on 4.
LAUNCHER = (
    "import os, sys; r, w = map(int, sys.argv[1:3]); r, w = os.dup(r), os.dup(w); "
    "os.dup2(r, 3); os.dup2(w, 4); os.set_inheritable(3, True); os.set_inheritable(4, True); "
    "os.execv(sys.argv[3], sys.argv[3:])"
)


class Chromium:
    def __init__(self, process: subprocess.Popen[bytes], commands: int, answers: int) -> None:
        self._process = process
        self._commands = commands
        self._answers = answers
        self._rest = b""
        self._last = 0
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """Send a command and wait for its answer; events that come meanwhile are kept."""
        self._last += 1
        command = {"id": self._last, "method": method, "params": params}
        if session is not None:
            command["sessionId"] = session
        data = json.dumps(command).encode() + b"\0"
        while data:
            data = data[os.write(self._commands, data) :]
        while (answer := self._next()).get("id") != self._last:
            self.events.append(answer)
        assert "error" not in answer, f"{method}: {answer['error']}"
        result: dict[str, Any] = answer["result"]
        return result

    def _next(self) -> dict[str, Any]:
        end = monotonic() + PATIENCE_S
        while b"\0" not in self._rest:
            ready, _, _ = select([self._answers], [], [], max(end - monotonic(), 0.0))
            assert ready, "chromium does not answer"
            data = os.read(self._answers, 1 << 20)
            assert data, f"chromium has ended: {self._process.poll()}"
            self._rest += data
        message, _, self._rest = self._rest.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        return answer

    def open(
        self, page: Path | str, *, dark: bool = False, width: int = 1280, height: int = 900
    ) -> Tab:
        """A file, or an address."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        tab = Tab(self, attached["sessionId"])
        for domain in ("Page", "Runtime", "Network", "Log"):
            tab.call(f"{domain}.enable")
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        tab.call("Emulation.setEmulatedMedia", features=[scheme])
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        tab.call("Emulation.setDeviceMetricsOverride", **size)
        tab.call("Page.navigate", url=page if isinstance(page, str) else page.as_uri())
        tab.wait("document.readyState === 'complete'")
        return tab

    def close(self) -> None:
        """Ask it to go, so that its children go with it."""
        if self._process.poll() is None:
            self.call("Browser.close")
        os.close(self._commands)
        os.close(self._answers)
        try:
            self._process.wait(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Tab:
    def __init__(self, browser: Chromium, session: str) -> None:
        self._browser = browser
        self._session = session

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self._browser.call(method, self._session, **params)

    def js(self, expression: str) -> Any:
        """The value of an expression in the page; promises are awaited."""
        found = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, condition: str) -> None:
        end = monotonic() + PATIENCE_S
        while not self.js(condition):
            assert monotonic() < end, f"never true: {condition}"
            sleep(LOOK_S)

    def settle(self) -> None:
        """Until what was done is on the screen."""
        self.js("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r(1))))")

    def click(self, selector: str, index: int = 0) -> None:
        """With a real mouse, in the middle of an element."""
        x, y = self.js(
            f"(() => {{ const e = document.querySelectorAll({selector!r})[{index}];"
            "e.scrollIntoView({block: 'center', inline: 'center'});"
            "const b = e.getBoundingClientRect(); return [b.x + b.width/2, b.y + b.height/2]; })()"
        )
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y)
        self.mouse("mouseReleased", x, y)
        self.settle()

    def mouse(self, kind: str, x: float, y: float) -> None:
        button = {} if kind == "mouseMoved" else {"button": "left", "clickCount": 1}
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **button)

    def press(self, key: str) -> None:
        code = {"windowsVirtualKeyCode": KEYS[key]} if key in KEYS else {"text": key}
        text = {"text": "\r"} if key == "Enter" else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **code, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)
        self.settle()

    def complaints(self) -> list[str]:
        """What the console says: errors, warnings, refused requests."""
        kinds = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
        return [json.dumps(event["params"]) for event in self._events(*kinds)]

    def requests(self) -> list[str]:
        found = self._events("Network.requestWillBeSent")
        return [str(event["params"]["request"]["url"]) for event in found]

    def _events(self, *methods: str) -> list[dict[str, Any]]:
        self.js("0")
        return [
            event
            for event in self._browser.events
            if event.get("method") in methods and event.get("sessionId") == self._session
        ]

    def photograph(self, path: Path) -> bytes:
        shot = self.call("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(shot["data"]))
        return path.read_bytes()


@contextmanager
def chromium(profile: Path) -> Iterator[Chromium]:
    assert FOUND is not None, WHY_NOT
    read_commands, commands = os.pipe()
    answers, write_answers = os.pipe()
    arguments = [
        *("--headless", "--no-sandbox", "--no-first-run", "--hide-scrollbars"),
        *(f"--disable-{name}" for name in QUIET),
        *("--remote-debugging-pipe", f"--user-data-dir={profile}"),
    ]
    process = subprocess.Popen(
        [sys.executable, "-c", LAUNCHER, str(read_commands), str(write_answers), FOUND, *arguments],
        pass_fds=(read_commands, write_answers),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(read_commands)
    os.close(write_answers)
    browser = Chromium(process, commands, answers)
    try:
        yield browser
    finally:
        browser.close()
