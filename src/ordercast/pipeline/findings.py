"""What the check of a property finds, in one form for all properties.

checked     how many facts were looked at
violations  how many of them break the property
doubts      how many might, if the log has holes or the run has not come to rest
witness     the smallest violation, or, where there is none, the smallest doubt; else null

    process         where it shows
    position        when, there
    origin, number  the message, or the first of the two (m, n) that an order is about
    other           the process whose deed obliges the first one; of an order, the origin of n
    later           the number of n
    link            how m came before n: sent, delivered, indirect
    missing         not done at all, rather than late
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

__all__ = ["WITNESS", "finding", "summed", "witness"]

_FIELDS = {
    "process": "int",
    "position": "bigint",
    "origin": "int",
    "number": "bigint",
    "other": "int",
    "later": "bigint",
    "link": "string",
    "missing": "boolean",
}
WITNESS = f"struct<{','.join(f'{name}:{kind}' for name, kind in _FIELDS.items())}>"


def witness(**fields: Column) -> Column:
    """The fields' order is that of comparison: the lesser of two witnesses is the smaller."""
    return F.struct(
        *(fields.get(name, F.lit(None)).cast(kind).alias(name) for name, kind in _FIELDS.items())
    )


def finding(*, checked: Column, violations: Column, doubts: Column, witness: Column) -> Column:
    """What one row contributes; its witness counts if there is anything to witness."""
    grade = F.when(violations > 0, 0).when(doubts > 0, 1)
    return F.struct(
        checked.alias("checked"),
        violations.alias("violations"),
        doubts.alias("doubts"),
        F.when(grade.isNotNull(), F.struct(grade.alias("grade"), witness.alias("witness"))).alias(
            "worst"
        ),
    )


def summed(table: DataFrame, *properties: str) -> DataFrame:
    """One row per run and property.

    in: run, and for each property a column of its name (`finding`)
    out: run, property, checked, violations, doubts, witness
    """
    totals = [
        F.struct(
            F.lit(name).alias("property"),
            F.sum(f"{name}.checked").alias("checked"),
            F.sum(f"{name}.violations").alias("violations"),
            F.sum(f"{name}.doubts").alias("doubts"),
            F.min(f"{name}.worst")["witness"].alias("witness"),
        )
        for name in properties
    ]
    by_run = table.groupBy("run").agg(F.array(*totals).alias("totals"))
    return by_run.select("run", F.inline("totals"))
