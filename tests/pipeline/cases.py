"""Runs by hand, and what is to be found in each."""

from __future__ import annotations

from ordercast.trace.verdicts import PROPERTIES, Verdict

from .builders import Run, run

ORDINARY = ("s1 d0:1 d1:1", "d0:1 s1 d1:1", "d0:1 d1:1")
HOLES = "and the log has holes"
NO_REST = "and the run has not come to rest"


class Case:
    """A run, what is not as it should be in it, and how many facts some properties saw.

    What is wrong: property, verdict, violations, the witness's process and messages, the sentence.
    """

    def __init__(self, run: Run, *wrong: str, total: bool = False, **checked: int) -> None:
        self.run = run
        self.wrong = set(wrong)
        self.checked = checked
        self.total = total

    def tells(self, verdict: Verdict) -> bool:
        """Only some cases are about orders that all processes agree on; most break one."""
        return self.total or PROPERTIES.index(verdict.property) <= PROPERTIES.index("causal")

    def __str__(self) -> str:
        return self.run.manifest.run


CASES = [
    Case(
        run("everything holds", *ORDINARY),
        no_duplication=6,
        no_creation=6,
        validity=2,
        agreement=6,
        uniform_agreement=6,
        fifo=6,
        causal=6,
    ),
    Case(run("no events", "", ""), **dict.fromkeys(PROPERTIES, 0)),
    Case(run("receiving is not delivering", "s1 r0:1 d0:1 r0:1", "r0:1 d0:1"), fifo=2),
    #
    # No duplication: the earliest second delivery is told, not the earliest last one.
    #
    Case(
        run("again and again", "s1 s2 d0:1 d0:2", "d0:1 d0:2 d0:1 d0:2 d0:1 d0:1"),
        "no_duplication violated 2, p1 0:1: p1 delivered 0:1 twice (positions 0 and 2)",
        no_duplication=4,
        fifo=4,
    ),
    Case(
        # By the bound that counting gives (position 3) 0:1 has come thrice: the second is told.
        run("three times", "s1 s2 d0:1 d0:2", "d0:1 d0:2 d0:1 d0:1 d0:2"),
        "no_duplication violated 2, p1 0:1: p1 delivered 0:1 twice (positions 0 and 2)",
    ),
    Case(
        run("the smallest process is told", "s1 d0:1 - - d0:1", "d0:1 d0:1", names=["ann", "bob"]),
        "no_duplication violated 2, p0 0:1: ann delivered 0:1 twice (positions 1 and 4)",
    ),
    #
    # No creation.
    #
    Case(
        run("never sent", "s1 d0:1", "d0:9 d0:1 d0:8"),
        "no_creation violated 2, p1 0:9: p1 delivered 0:9, which p0 never sent",
        no_creation=4,
        fifo=2,
        causal=2,
    ),
    Case(
        run("not addressed", "s1>0,1 d0:1", "d0:1", "d0:1"),
        "no_creation violated 1, p2 0:1: p2 delivered 0:1, which is not addressed to it",
        no_creation=3,
        fifo=2,
        agreement=2,
    ),
    Case(
        run("an orphan", "", "d0:1"),
        "no_creation unknown 0, p1 0:1: p1 delivered 0:1, whose send is not in the log of p0",
    ),
    Case(
        run("a stranger", "d7:1"),
        "no_creation violated 1, p0 7:1: p0 delivered 7:1, which p7 never sent",
    ),
    Case(
        run("holes explain a missing send", "s1 d0:1", "d0:9 d0:1", complete=False),
        "no_creation unknown 0, p1 0:9: p1 delivered 0:9, whose send is not in the log of p0",
    ),
    Case(
        run("holes explain no wrong address", "s1> s2>0 d0:2", "d0:1 d0:2", complete=False),
        "no_creation violated 2, p1 0:1: p1 delivered 0:1, which is not addressed to it",
    ),
    #
    # Validity.
    #
    Case(
        run("the sender never delivers", "s1", "d0:1"),
        "validity violated 1, p0 0:1: p0 sent 0:1 and never delivered it itself",
        "agreement violated 1, p0 0:1: "
        "p1 delivered 0:1, but p0, to which it is addressed, never did",
        "uniform_agreement violated 1, p0 0:1: "
        "p1 delivered 0:1, but p0, to which it is addressed, never did",
        validity=1,
        agreement=2,
    ),
    Case(
        run("one addressee of two", "s1>1,2", "d0:1", "join", quiesced=False),
        f"validity unknown 0, p2 0:1: p0 sent 0:1 to p2, which never delivered it, {NO_REST}",
        "agreement unknown 0, p2 0:1: "
        f"p1 delivered 0:1, but p2, to which it is addressed, never did, {NO_REST}",
        "uniform_agreement unknown 0, p2 0:1: "
        f"p1 delivered 0:1, but p2, to which it is addressed, never did, {NO_REST}",
        validity=2,
    ),
    Case(run("a crashed sender owes nothing", "s1 crash", ""), validity=0),
    Case(run("a message for nobody", "s1>", ""), validity=0, agreement=0),
    Case(
        run("a recovered sender owes", "s1 crash recover", ""),
        "validity violated 1, p0 0:1: p0 sent 0:1 and never delivered it itself",
    ),
    Case(run("crashed once more", "s1 crash recover crash", ""), validity=0),
    #
    # Agreement: what a crashed process delivered binds the others in the uniform form only.
    #
    Case(
        run("the deliverer crashed", "s1 d0:1 crash", "join", "join"),
        "uniform_agreement violated 2, p1 0:1: "
        "p0 delivered 0:1, but p1, to which it is addressed, never did",
        agreement=0,
        uniform_agreement=2,
    ),
    Case(run("nobody delivered", "s1>1 crash", ""), agreement=0, uniform_agreement=0, validity=0),
    Case(run("a crashed process owes nothing", "s1 d0:1", "crash"), agreement=1, validity=1),
    Case(
        run("holes explain a missing delivery", "s1 d0:1", "", complete=False),
        "agreement unknown 0, p1 0:1: "
        f"p0 delivered 0:1, but p1, to which it is addressed, never did, {HOLES}",
        "uniform_agreement unknown 0, p1 0:1: "
        f"p0 delivered 0:1, but p1, to which it is addressed, never did, {HOLES}",
    ),
    #
    # FIFO, and with it causal order, which contains it. (Sends to oneself only would owe validity:
    # so p0 delivers what it sends, and p1 is the one to watch.)
    #
    Case(
        run("swapped", "s1 s2 d0:1 d0:2", "d0:2 d0:1", order="unordered"),
        "fifo violated 1, p1 0:1 0:2: p0 sent 0:1 and then 0:2, but p1 delivered 0:2 before 0:1",
        "causal violated 1, p1 0:1 0:2: p0 sent 0:1 and then 0:2, but p1 delivered 0:2 before 0:1",
        fifo=4,
        causal=4,
    ),
    Case(
        run("skipped", "s1>1 s2>1 s3>1", "d0:1 d0:3", quiesced=False),
        "fifo violated 1, p1 0:2 0:3: p0 sent 0:2 and then 0:3, but p1 delivered 0:3 and never 0:2",
        "causal violated 1, p1 0:2 0:3: "
        "p0 sent 0:2 and then 0:3, but p1 delivered 0:3 and never 0:2",
        f"validity unknown 0, p1 0:2: p0 sent 0:2 to p1, which never delivered it, {NO_REST}",
        fifo=2,
        agreement=2,
    ),
    Case(
        # Of all that was due before 0:4, the one that was sent first.
        run("the earliest is told", "s1>1 s2>1 s3>1 s4>1", "d0:1 d0:4 d0:3 d0:2"),
        "fifo violated 2, p1 0:2 0:4: p0 sent 0:2 and then 0:4, but p1 delivered 0:4 before 0:2",
        "causal violated 2, p1 0:2 0:4: p0 sent 0:2 and then 0:4, but p1 delivered 0:4 before 0:2",
    ),
    Case(
        run("order is by position, not by number", "s5 s2 d0:5 d0:2", "d0:5 d0:2"),
        fifo=4,
        causal=4,
    ),
    Case(
        run("only what is addressed counts", "s1>0,1 s2>0,2 d0:1 d0:2", "d0:1", "d0:2"),
        fifo=4,
        causal=4,
    ),
    Case(
        run("a second delivery is no inversion", "s1>1 s2>1", "d0:1 d0:2 d0:1"),
        "no_duplication violated 1, p1 0:1: p1 delivered 0:1 twice (positions 0 and 2)",
    ),
    Case(
        run("holes explain a skip", "s1>1 s2>1", "d0:2", complete=False),
        "fifo unknown 0, p1 0:1 0:2: "
        f"p0 sent 0:1 and then 0:2, but p1 delivered 0:2 and never 0:1, {HOLES}",
        "causal unknown 0, p1 0:1 0:2: "
        f"p0 sent 0:1 and then 0:2, but p1 delivered 0:2 and never 0:1, {HOLES}",
        f"validity unknown 0, p1 0:1: p0 sent 0:1 to p1, which never delivered it, {HOLES}",
    ),
    Case(
        # 0:1 is missing as well, but that might be a hole: the swap is what proves it.
        run("holes explain no swap", "s1>1 s2>1 s3>1", "d0:3 d0:2", complete=False),
        "fifo violated 1, p1 0:2 0:3: p0 sent 0:2 and then 0:3, but p1 delivered 0:3 before 0:2",
        "causal violated 1, p1 0:2 0:3: p0 sent 0:2 and then 0:3, but p1 delivered 0:3 before 0:2",
        f"validity unknown 0, p1 0:1: p0 sent 0:1 to p1, which never delivered it, {HOLES}",
        fifo=2,
    ),
    #
    # Causal order proper.
    #
    Case(
        run("the answer before the question", ORDINARY[0], ORDINARY[1], "d1:1 d0:1"),
        "causal violated 1, p2 0:1 1:1: "
        "p1 delivered 0:1 and then sent 1:1, but p2 delivered 1:1 before 0:1",
    ),
    Case(run("not heard of at the time", "s1 d0:1 d1:1", "s1 d1:1 d0:1", "d1:1 d0:1"), causal=6),
    Case(
        # p2 never gets 0:2, which links the two: direct dependencies alone would miss it.
        run("through a message unseen", "s1>2 s2>1", "d0:2 s1>2", "d1:1 d0:1"),
        "causal violated 1, p2 0:1 1:1: 0:1 happened before 1:1, but p2 delivered 1:1 before 0:1",
        fifo=3,
        causal=3,
    ),
    Case(
        # Both 0:1 and 1:1 are due before 2:1; p2 delivered 1:1 itself, so that one is told.
        run("the direct one", "s1>3 s2>1", "d0:2 s1>2,3", "d1:1 s1>3", "d2:1 d0:1 d1:1"),
        "causal violated 1, p3 1:1 2:1: "
        "p2 delivered 1:1 and then sent 2:1, but p3 delivered 2:1 before 1:1",
    ),
    Case(
        # Each was delivered before the other was sent: only a corrupt log says so.
        run("a cycle", "d1:1 s1 d0:1", "d0:1 s1 d1:1"),
        "causal violated 2, p0 0:1 1:1: "
        "p1 delivered 0:1 and then sent 1:1, but p0 delivered 1:1 before 0:1",
        causal=4,
    ),
    Case(
        # p1 knows of 0:2 when it sends 1:1, and p0 of 1:1 when it sends 0:1: round the cycle, 0:2
        # comes before 0:1, against the order of sending.
        run("a cycle against the order of sending", "d1:1 s1>2 s2>1", "d0:2 s1>0,2", "d0:1 d1:1"),
        "causal violated 1, p2 1:1 0:1: "
        "p0 delivered 1:1 and then sent 0:1, but p2 delivered 0:1 before 1:1",
    ),
    #
    # Total and synchronous order.
    #
    Case(
        run("one after the other", "s1 d0:1 d1:1 d1:2", "d0:1 s1 d1:1 s2 d1:2"),
        total=True,
        total_pairwise=4,
        total_acyclic=4,
        total_gap_free=6,
        synchronous=4,
    ),
    Case(
        # Neither was heard of when the other was sent, and both deliver them in one order.
        run("a crown", "s1>1 d1:1", "s1>0 d0:1"),
        "synchronous violated 1, p0 0:1 1:1: "
        "no one order fits: p0 had 0:1 before 1:1, p1 had 1:1 before 0:1",
        total=True,
        total_pairwise=0,
        total_acyclic=0,
        synchronous=2,
    ),
    Case(
        run("crossed", "s1>1,2", "d0:1 d3:1", "d3:1 d0:1", "s1>1,2"),
        "total_pairwise violated 1, p2 0:1 3:1: "
        "p1 delivered 0:1 before 3:1, but p2 delivered 3:1 before 0:1",
        "total_acyclic violated 1, p1 0:1 3:1: no one order fits: "
        "p1 delivered 0:1 before 3:1, p2 delivered 3:1 before 0:1",
        "total_gap_free violated 2, p1 3:1 0:1: "
        "p2 delivered 3:1 before 0:1, but p1 delivered 0:1 before 3:1",
        "synchronous violated 1, p1 0:1 3:1: no one order fits: "
        "p1 had 0:1 before 3:1, p2 had 3:1 before 0:1",
        total=True,
        total_pairwise=2,
        total_acyclic=2,
        total_gap_free=4,
    ),
    Case(
        # No two processes disagree on two messages, since no two have two in common.
        run(
            "a cycle that no pair shows",
            "d3:1 d4:1",
            "d4:1 d5:1",
            "d5:1 d3:1",
            "s1>0,2",
            "s1>0,1",
            "s1>1,2",
        ),
        "total_acyclic violated 1, p0 3:1 4:1 5:1: no one order fits: "
        "p0 delivered 3:1 before 4:1, p1 delivered 4:1 before 5:1, p2 delivered 5:1 before 3:1",
        "synchronous violated 1, p0 3:1 4:1 5:1: no one order fits: "
        "p0 had 3:1 before 4:1, p1 had 4:1 before 5:1, p2 had 5:1 before 3:1",
        total=True,
        total_pairwise=3,
    ),
    Case(
        run("a gap", "s1>2,3 s2>2,3", "", "d0:1 d0:2", "d0:2"),
        "agreement violated 1, p3 0:1: p2 delivered 0:1, but p3, to which it is addressed, "
        "never did",
        "uniform_agreement violated 1, p3 0:1: p2 delivered 0:1, but p3, to which it is "
        "addressed, never did",
        "validity violated 1, p3 0:1: p0 sent 0:1 to p3, which never delivered it",
        "fifo violated 1, p3 0:1 0:2: p0 sent 0:1 and then 0:2, but p3 delivered 0:2 and never 0:1",
        "causal violated 1, p3 0:1 0:2: "
        "p0 sent 0:1 and then 0:2, but p3 delivered 0:2 and never 0:1",
        "total_gap_free violated 1, p3 0:1 0:2: "
        "p2 delivered 0:1 before 0:2, but p3 delivered 0:2 and never 0:1",
        total=True,
    ),
    Case(
        run("a gap or a hole", "s1>1,2", "d0:1 d3:1", "d3:1", "s1>1,2", complete=False),
        f"agreement unknown 0, p2 0:1: p1 delivered 0:1, but p2, to which it is addressed, "
        f"never did, {HOLES}",
        f"uniform_agreement unknown 0, p2 0:1: p1 delivered 0:1, but p2, to which it is "
        f"addressed, never did, {HOLES}",
        f"validity unknown 0, p2 0:1: p0 sent 0:1 to p2, which never delivered it, {HOLES}",
        "total_gap_free unknown 0, p2 0:1 3:1: "
        f"p1 delivered 0:1 before 3:1, but p2 delivered 3:1 and never 0:1, {HOLES}",
        total=True,
    ),
]
