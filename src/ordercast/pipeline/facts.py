"""The tables that the properties are read off, from the coarse to the fine.

attendance  one row per (run, process): how it took part
rows        the send and deliver rows, and on a send whom it addresses
pairs       one row per (run, process, message) where the process is addressed or has delivered
messages    one row per (run, message): its pairs, counted

runs, one row per run, stands beside them: run, members, seen, crashed (arrays of processes: all;
those with a row; those not correct), size (how many the manifest names, or null), quiesced,
complete.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

__all__ = ["addressed", "attendance", "message_rows", "messages", "pairs"]

MESSAGE = ("run", "origin", "number")
CIRCUMSTANCES = ("answerable", "sender_correct", "settled", "complete")


def attendance(events: DataFrame) -> DataFrame:
    """How each process took part, and where its rows contradict each other.

    Every row claims its position, and a send claims its number as well, with the bits inverted: so
    the sign tells them apart, and one count finds whatever is claimed twice.

    in: run, process, position, kind, number, destinations, flaw
    out: run, process, events, flaws (0 if all rows are sound), crash and recover (the last
    position, or null), farthest (the largest destination, or null), position_twice and
    number_twice (the smallest, or null)
    """
    position, kind, claim = F.col("position"), F.col("kind"), F.col("claim")
    claims = F.when(kind == "send", F.array(position, F.bitwise_not("number"))).otherwise(
        F.array(position)
    )
    claimed = (
        events.select(
            "run",
            "process",
            "position",
            "kind",
            "destinations",
            "flaw",
            F.explode(claims).alias("claim"),
        )
        # Nearly every claim is unique: to count them before the exchange would be for nothing.
        .repartition("run", "process", "claim")
        .groupBy("run", "process", "claim")
        .agg(
            F.count("*").alias("copies"),
            F.count("flaw").alias("flaws"),
            F.max(F.when(kind == "crash", position)).alias("crash"),
            F.max(F.when(kind == "recover", position)).alias("recover"),
            F.max(F.array_max("destinations")).alias("farthest"),
        )
    )
    twice = F.col("copies") > 1
    return claimed.groupBy("run", "process").agg(
        F.sum(F.when(claim >= 0, F.col("copies"))).alias("events"),
        F.sum("flaws").alias("flaws"),
        F.max("crash").alias("crash"),
        F.max("recover").alias("recover"),
        F.max("farthest").alias("farthest"),
        F.min(F.when(twice & (claim >= 0), claim)).alias("position_twice"),
        F.min(F.when(twice & (claim < 0), F.bitwise_not(claim))).alias("number_twice"),
    )


def message_rows(events: DataFrame) -> DataFrame:
    """The rows that order and delivery are judged by.

    out: run, process, position, origin, number, destinations, sent (else delivered)
    """
    return events.where(F.col("kind").isin("send", "deliver")).select(
        "run",
        "process",
        "position",
        "origin",
        "number",
        "destinations",
        (F.col("kind") == "send").alias("sent"),
    )


def addressed() -> Column:
    """On a send the members that it is for, on a deliver row null. Needs the run's `members`."""
    everyone = F.col("destinations").isNull()
    # The intersection also drops what is named twice, and, in a run without a manifest, whoever
    # left no trace at all: nobody can tell what became of them.
    named = F.array_intersect("destinations", "members")
    return F.when(F.col("sent"), F.when(everyone, F.col("members")).otherwise(named))


def pairs(rows: DataFrame, runs: DataFrame) -> DataFrame:
    """Who was to deliver what, and when it did.

    in: `message_rows`
    out: run, process, origin, number, sent_at (position of the send if the process is addressed,
    else null), first and last (positions of its deliveries), copies (how many there are);
    correct (the process is), sender_correct, answerable (the origin's log would show the send),
    settled (what is not in the log was not done), complete.
    A message for nobody has one row, with a null process.
    """
    who = F.when(F.col("sent"), addressed()).otherwise(F.array("process"))
    delivered_at = F.when(~F.col("sent"), F.col("position"))
    met = (
        rows.repartition(*MESSAGE)
        .join(F.broadcast(runs.select("run", "members")), "run")
        .select(*MESSAGE, "position", "sent", F.explode_outer(who).alias("process"))
        .groupBy("run", "process", "origin", "number")
        .agg(
            F.max(F.when(F.col("sent"), F.col("position"))).alias("sent_at"),
            F.min(delivered_at).alias("first"),
            F.max(delivered_at).alias("last"),
            F.count(delivered_at).alias("copies"),
        )
    )
    stranger = F.coalesce(F.col("origin") >= F.col("size"), F.lit(False))
    return met.join(F.broadcast(runs.drop("members")), "run").select(
        *met.columns,
        (~F.array_contains("crashed", F.col("process"))).alias("correct"),
        (~F.array_contains("crashed", F.col("origin"))).alias("sender_correct"),
        (F.col("complete") & (F.array_contains("seen", F.col("origin")) | stranger)).alias(
            "answerable"
        ),
        (F.col("complete") & F.col("quiesced")).alias("settled"),
        "complete",
    )


def messages(pairs: DataFrame) -> DataFrame:
    """What became of each message.

    in: `pairs`
    out: run, origin, number, known (there is a send row), delivered (by how many processes),
    deliverer and correct_deliverer (the smallest), repeated (how many delivered it again),
    repeater (the smallest) and repeated_at (its last delivery), strays (how many delivered it
    without being addressed), stray (the smallest) and strayed_at (its first delivery),
    owed (how many correct processes it is addressed to), unmet (how many of them never
    delivered), debtor (the smallest), to_sender (is it addressed to its origin), returned (did it
    arrive there), answerable, sender_correct, settled, complete
    """
    process = F.col("process")
    delivered = F.col("first").isNotNull()
    addressed = F.col("sent_at").isNotNull()
    correct = F.col("correct")
    repeated = F.col("copies") > 1
    stray = delivered & ~addressed
    owed = process.isNotNull() & addressed & correct
    unmet = owed & ~delivered
    own = process.eqNullSafe(F.col("origin"))
    return pairs.groupBy(*MESSAGE, *CIRCUMSTANCES).agg(
        F.max(addressed).alias("known"),
        F.count("first").alias("delivered"),
        F.min(F.when(delivered, process)).alias("deliverer"),
        F.min(F.when(delivered & correct, process)).alias("correct_deliverer"),
        F.count_if(repeated).alias("repeated"),
        F.min(F.when(repeated, process)).alias("repeater"),
        F.min_by("last", F.when(repeated, process)).alias("repeated_at"),
        F.count_if(stray).alias("strays"),
        F.min(F.when(stray, process)).alias("stray"),
        F.min_by("first", F.when(stray, process)).alias("strayed_at"),
        F.count_if(owed).alias("owed"),
        F.count_if(unmet).alias("unmet"),
        F.min(F.when(unmet, process)).alias("debtor"),
        F.max(own & addressed).alias("to_sender"),
        F.max(own & delivered).alias("returned"),
    )
