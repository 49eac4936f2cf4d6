"""`ordercast run --live`: the page that shows a group while it runs, from start to verdict.

The server has a thread of its own, so that it still answers while Spark judges; the group is in
the launcher's. What one tells the other is on the board.
"""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ordercast.cli.live_app import Key, Streams, application, server_of
from ordercast.cli.live_board import Board, Verdicts
from ordercast.report.live import live_page, verdict_block
from ordercast.runtime.plan import Plan
from ordercast.trace.verdicts import Judgement

__all__ = ["Stage", "staged"]

HOST = "127.0.0.1"
RETURN_S = 3.0
"""How long a page that has lost the connection gets to come back for the verdicts."""
ENDING_S = 5.0


class Stage:
    """Where the group is shown. `board` is the launcher's audience."""

    def __init__(self, board: Board, streams: Streams) -> None:
        self.board = board
        self._streams = streams

    def show(self, judgement: Judgement) -> None:
        """Over when everyone who looks on has seen it."""
        self._conclude(Verdicts(verdict_block(judgement), None))

    def fail(self, why: str) -> None:
        """There will be no verdicts."""
        self._conclude(Verdicts(None, why))

    def _conclude(self, verdicts: Verdicts) -> None:
        self.board.conclude(verdicts)
        streams = self._streams
        deadline = time.monotonic() + RETURN_S
        while streams.begun and time.monotonic() < deadline:
            if streams.concluded and not streams.open:
                return
            time.sleep(0.05)


@contextmanager
def staged(plan: Plan) -> Iterator[Stage]:
    """Serve the page, and say where on stderr; at the end nothing of it is left."""
    names = [f"p{process}" for process in range(plan.processes)]
    page = live_page(
        algorithm=f"{plan.ordering} over {plan.dissemination}", processes=names, run=plan.run
    )
    board, streams = Board(), Streams()
    with socket.create_server((HOST, 0)) as listening:
        port = listening.getsockname()[1]
        key = Key(port)
        server = server_of(application(board, key, page, streams))
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        print(f"live: http://{HOST}:{port}/?token={key.token}", file=sys.stderr, flush=True)
        stage = Stage(board, streams)
        try:
            yield stage
        except KeyboardInterrupt:
            stage.fail("The run was interrupted.")
            raise
        except Exception as error:
            stage.fail(f"The run has failed: {error}")
            raise
        finally:
            server.should_exit = True
            thread.join(ENDING_S)
