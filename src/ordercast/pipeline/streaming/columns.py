"""Arrow's columns in the clothes of pandas: the form in which Spark takes many rows from state.

Spark turns each list, map and struct of a frame into Python's, one by one, before it makes Arrow's
of them again. Those here are Arrow's already, and go as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa

__all__ = ["frames"]

_FRAME_BYTES = 4 << 20
"""What Spark holds at once, on its way through a socket."""


class _Column(pd.Series):  # type: ignore[misc]
    def apply(self, *_: Any, **__: Any) -> _Column:
        """Spark's way to look at each value. Nothing else calls it."""
        return self


class _Columns(pd.DataFrame):  # type: ignore[misc]
    @property
    def _constructor_sliced(self) -> type[_Column]:
        return _Column


def frames(rows: pa.Table) -> Iterator[pd.DataFrame]:
    """In pieces of moderate size; columns are known by their place."""
    pieces = max(1, -(-rows.nbytes // _FRAME_BYTES))
    step = max(1, -(-len(rows) // pieces))
    whole = rows.combine_chunks()
    for start in range(0, len(rows), step):
        some = whole.slice(start, step).columns
        columns = {at: pd.arrays.ArrowExtensionArray(column) for at, column in enumerate(some)}
        yield _Columns(columns, copy=False)
