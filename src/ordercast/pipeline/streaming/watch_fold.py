"""One run, batch by batch: what it brings, what is to be said, what is kept. No Spark here.

rows come         those at a position that was taken are left out
what is judged    each process's log as far as it is here without a gap
what is said      `watch_verdicts`; a violation in the very batch that brings its last row
what is kept      `watch_prune`; beyond `keep` rows, whatever the price
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ordercast.pipeline.kernels.index import DELIVER, SEND
from ordercast.pipeline.kernels.kernel import Bools
from ordercast.pipeline.streaming.watch_forget import forget
from ordercast.pipeline.streaming.watch_late import sent_again, set_aside
from ordercast.pipeline.streaming.watch_log import KEPT, Log
from ordercast.pipeline.streaming.watch_measures import delays
from ordercast.pipeline.streaming.watch_memory import Memory
from ordercast.pipeline.streaming.watch_verdicts import Known, Rules, judge_log, sum_up
from ordercast.trace.news import Quantiles
from ordercast.trace.verdicts import PROPERTIES, Verdict

__all__ = ["Fold", "Folded"]

FLAWS_MOST = 100
"""How many sentences about bad rows of one run are said."""


class Folded(msgspec.Struct):
    """What one batch has led to."""

    fresh: pa.Table
    """The rows that came, without those that are left out: to be kept beside the others..."""
    kept: pa.Table | None
    """...unless these are, instead of everything."""
    verdicts: list[Verdict]
    """By property."""
    flaws: list[str]
    """What was wrong, if it was not said before."""
    new_events: int
    new_deliveries: int
    waiting: int
    """Rows behind a gap."""
    latency: Quantiles | None
    held: Quantiles | None
    over: bool


class Fold:
    def __init__(self, run: str, rules: Rules, memory: Memory) -> None:
        self._run = run
        self._rules = rules
        self.memory = memory

    def add(self, kept: Sequence[pa.Table], new: Sequence[pa.Table]) -> Folded:
        """in: kept: the rows from before; new: what came (`KEPT`)"""
        memory = self.memory
        before, said = sum(map(len, kept)), len(memory.flaws)
        new = [self._unseen(table) for table in new]
        log, places = Log.of([*kept, *new])
        memory.repeated += before + sum(map(len, new)) - len(log)
        fresh = places >= before
        new_events, new_deliveries = int(fresh.sum()), int((fresh & (log.kind == DELIVER)).sum())
        memory.events += new_events
        memory.deliveries += new_deliveries
        memory.messages += int((fresh & (log.kind == SEND)).sum())
        known = self._known()
        here = self._here(log, known)
        waiting = log.only(~here)
        mine, fresh_here = log.only(here), fresh[here]
        latency, held = delays(mine, fresh_here)
        sound = mine.only(self._sound(mine, known))
        self._complain(sent_again(self._run, sound, memory))
        late = set_aside(sound, memory)
        dropped_rows = len(sound) < len(mine) or bool(late.any())
        mine, known = sound.only(~late), self._known()
        now = judge_log(mine, known, self._rules.properties)
        self._complain(now.flaws)
        verdicts = sum_up(now.verdicts, memory, mine, known)
        left = mine if known.ended else forget(mine, known, now.verdicts, memory, self._rules)
        over = known.ended and known.quiesced
        rewritten = None
        if over:
            rewritten = KEPT.empty_table()
        elif dropped_rows or left is not mine:
            rewritten = pa.concat_tables([left.table, waiting.table])
        return Folded(
            fresh=pa.concat_tables([KEPT.empty_table(), *new]),
            kept=rewritten,
            verdicts=[verdicts[name] for name in PROPERTIES if name in verdicts],
            flaws=memory.flaws[said:],
            new_events=new_events,
            new_deliveries=new_deliveries,
            waiting=len(waiting),
            latency=latency,
            held=held,
            over=over,
        )

    def _known(self) -> Known:
        manifest = self.memory.described()
        told = None if manifest is None or manifest.silent else manifest.quiesced
        at_rest = self._rules.quiesced if told is None else told
        ended = self._rules.ended or (manifest is not None and manifest.quiesced)
        return Known(self._run, manifest, at_rest and ended, ended, torn=bool(self.memory.flaws))

    def _unseen(self, table: pa.Table) -> pa.Table:
        """Without rows at positions that were judged already."""
        process, position = table["process"].to_numpy(), table["position"].to_numpy()
        here, at = np.unique(process, return_inverse=True)
        upto = np.array([self.memory.next.get(one, 0) for one in here.tolist()], np.int64)
        seen = position < upto[at]
        self.memory.repeated += int(seen.sum())
        return table.filter(pa.array(~seen)) if seen.any() else table

    def _here(self, log: Log, known: Known) -> Bools:
        """The rows that have nothing missing before them; if nothing more comes, or if the log is
        known to have holes, all of them."""
        following = self.memory.next
        whole = known.manifest is None or known.manifest.complete
        waits = whole and not known.ended
        here = np.ones(len(log), np.bool_)
        for process in np.unique(log.process).tolist():
            low, high = np.searchsorted(log.process, (process, process + 1))
            expected = following.get(process, 0)
            start = low + int(np.searchsorted(log.position[low:high], expected))
            ahead = log.position[start:high]
            unbroken = int((ahead == expected + np.arange(len(ahead))).cumprod().sum())
            if waits:
                following[process] = expected + unbroken
                here[start + unbroken : high] = False
            elif len(ahead):
                following[process] = int(ahead[-1]) + 1
        return here

    def _sound(self, log: Log, known: Known) -> Bools:
        """All rows but those that are about processes that the manifest does not know."""
        sound = np.ones(len(log), np.bool_)
        if known.manifest is None:
            return sound
        alien = log.process >= known.members
        lists = log.table["destinations"]
        farthest = np.zeros(len(log), np.int64)
        if lists.null_count < len(lists):
            parents = pc.list_parent_indices(lists).to_numpy()
            np.maximum.at(farthest, parents, pc.list_flatten(lists).to_numpy())
        sound = np.asarray(~alien & ~((log.kind == SEND) & (farthest >= known.members)), np.bool_)
        if not sound.all():
            # The kernels know the words for it.
            self._complain(judge_log(log, known, ()).flaws)
        return sound

    def _complain(self, flaws: Sequence[str]) -> None:
        for flaw in flaws:
            if flaw not in self.memory.flaws and len(self.memory.flaws) < FLAWS_MOST:
                self.memory.flaws.append(flaw)
