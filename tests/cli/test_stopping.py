"""However inconvenient the moment, whoever asks for an end gets it."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

VERB = """
import os, signal, sys, time
from ordercast.cli import algorithms, main

class Inconvenient:
    def __del__(self):
        os.kill(os.getpid(), {number})
        for _ in range(1000):
            pass  # here it is heard, and Python drops what that raises

def act(options):
    Inconvenient()
    print("goes on", flush=True)
    time.sleep({seconds})
    print("judges", flush=True)
    return 0

algorithms.act = act
sys.exit(main(["algorithms"]))
"""


@pytest.mark.parametrize("seconds", [600, 0], ids=["meanwhile", "at the end"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_stop_in_the_middle_of_a_deletion_is_not_lost(number: int, seconds: int) -> None:
    program = VERB.format(number=int(number), seconds=seconds)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 128 + number
    assert done.stdout.splitlines()[0] == "goes on"
    assert ("judges" in done.stdout) == (seconds == 0)
    assert done.stderr == "ordercast algorithms: interrupted\n"


def test_other_trouble_in_a_deletion_is_told_as_ever() -> None:
    program = VERB.replace("os.kill(os.getpid(), {number})", "raise ValueError('mine')")
    done = subprocess.run(
        [sys.executable, "-c", program.format(seconds=0)], capture_output=True, text=True
    )
    assert done.returncode == 0
    assert "ValueError: mine" in done.stderr
