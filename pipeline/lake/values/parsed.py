"""Parsed values: columns of those that fit, and reasons for the rest."""

from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa


class Misfit(NamedTuple):
    """A value that gives no row.

    Attributes:
        position: Among the values.
        reason: A sentence for a reader of the quarantine.
        schema_id: The registry's, none without one.
    """

    position: int
    reason: str
    schema_id: int | None = None


class Parsed(NamedTuple):
    """Values as columns.

    Attributes:
        columns: One row for each value that fits, in the values' order.
        misfits: The others, ascending by position; together they are all values.
        behind: Ids of writers' schemas with fields or types that the table has not yet.
        deletes: For each row of `columns`, whether the value deletes; None: no value does.
    """

    columns: pa.RecordBatch
    misfits: list[Misfit]
    behind: frozenset[int] = frozenset()
    deletes: "np.ndarray[tuple[int], np.dtype[np.bool_]] | None" = None


class ValueFormat(Protocol):
    """A parser from bytes to columns, independent of records, offsets and tables."""

    schema: pa.Schema
    """Of the columns."""

    bare: bool
    """Whether a value is one column by itself, not fields."""

    def parse(self, values: pa.BinaryArray) -> Parsed:
        """The columns of values, none of which is null."""
        ...
