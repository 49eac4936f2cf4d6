"""Buckets of groups: as many as there are tasks, and each in a task of its own.

A bucket costs a few calls of the state store in every batch, each across a socket, so there should
be no more of them than keep all tasks busy. Spark sends a bucket to the partition that the hash of
its id says; ids are chosen so that those differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["FIRST", "bucket_ids", "buckets_for"]

FIRST = 0
"""An id that there always is."""
_MOST = 16
"""By default: Spark's own default for the number of partitions, 200, is for large batches."""
_WORD = 0xFFFFFFFF


def buckets_for(spark: SparkSession) -> int:
    """By default."""
    return min(_MOST, int(str(spark.conf.get("spark.sql.shuffle.partitions"))))


def bucket_ids(count: int) -> list[int]:
    """The least of those that fall into each of so many partitions; where there are fewer
    partitions, and their number divides `count`, each has as many buckets as any other."""
    ids: dict[int, int] = {}
    candidate = FIRST
    while len(ids) < count:
        ids.setdefault(_hash(candidate) % count, candidate)
        candidate += 1
    return [ids[partition] for partition in range(count)]


def _hash(value: int) -> int:
    """Of an integer, as Spark has it: murmur3 with the seed 42."""
    mixed = _rotated(value * 0xCC9E2D51 & _WORD, 15) * 0x1B873593 & _WORD
    found = (_rotated(42 ^ mixed, 13) * 5 + 0xE6546B64 & _WORD) ^ 4
    found = (found ^ found >> 16) * 0x85EBCA6B & _WORD
    found = (found ^ found >> 13) * 0xC2B2AE35 & _WORD
    found ^= found >> 16
    return found - (1 << 32) if found >> 31 else found


def _rotated(word: int, bits: int) -> int:
    return (word << bits | word >> 32 - bits) & _WORD
