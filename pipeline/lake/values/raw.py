"""Bytes and text as they are, in one column."""

import pyarrow as pa

from pipeline.lake.values.parsed import Misfit, Parsed


class RawFormat:
    """Every value fits."""

    bare = True

    def __init__(self, column: str = "value") -> None:
        self.schema = pa.schema([pa.field(column, pa.binary())])

    def parse(self, values: pa.BinaryArray) -> Parsed:
        """The values themselves; nothing is copied."""
        return Parsed(pa.RecordBatch.from_arrays([values], schema=self.schema), [])


class StringFormat:
    """Every value that is UTF-8 fits."""

    bare = True

    def __init__(self, column: str = "value") -> None:
        self.schema = pa.schema([pa.field(column, pa.string())])

    def parse(self, values: pa.BinaryArray) -> Parsed:
        """The values as text."""
        out = not_utf8(values)
        if out:
            inside = set(out)
            kept = pa.array([n for n in range(len(values)) if n not in inside], pa.int64())
            text = values.take(kept).cast(pa.string())
        else:
            text = values.cast(pa.string())
        misfits = [Misfit(at, utf8_problem(values[at].as_py()) or "") for at in out]
        return Parsed(pa.RecordBatch.from_arrays([text], schema=self.schema), misfits)


def not_utf8(values: pa.BinaryArray) -> list[int]:
    """Positions of values that are no UTF-8, ascending; found by halving, as there are few."""
    found = []
    parts = [(0, len(values))]
    while parts:
        start, end = parts.pop()
        try:
            values.slice(start, end - start).cast(pa.string())
        except pa.ArrowInvalid:
            if end - start == 1:
                found.append(start)
            else:
                middle = (start + end) // 2
                parts += [(middle, end), (start, middle)]
    return found


def utf8_problem(value: bytes) -> str | None:
    """Position at which a value is no UTF-8, as a sentence; none if it is."""
    try:
        value.decode()
    except UnicodeDecodeError as error:
        return f"the value is not UTF-8 at byte {error.start}"
    return None
