"""Columns as Arrow has them, in the words in which Spark is told of them."""

from __future__ import annotations

import pyarrow as pa

__all__ = ["spark_schema", "spark_type"]

_WORDS = {"int64": "bigint", "int32": "int", "bool": "boolean"}


def spark_schema(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {spark_type(field.type)}" for field in schema)


def spark_type(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return f"array<{spark_type(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'{f.name}: {spark_type(f.type)}' for f in kind)}>"
    return _WORDS.get(str(kind), str(kind))
