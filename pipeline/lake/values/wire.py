"""Confluent's wire format: what stands before a value that was written with a registry.

    byte 0       0, the magic byte
    bytes 1-4    the schema's id, big endian, unsigned
    (Protobuf)   message indexes, see `pipeline.lake.values.protobuf`
    the rest     the value

https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/index.html#wire-format
"""

from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from pipeline.lake.values.parsed import Misfit, Parsed, ValueFormat

HEADER_BYTES: Final = 5

Positions: TypeAlias = np.ndarray[tuple[int], np.dtype[np.int64]]


class Framed(NamedTuple):
    """Values without their headers.

    Attributes:
        positions: Of those that have a header, among all values.
        schema_ids: Of each of them.
        bodies: What follows the header of each of them.
        misfits: Values that have none.
    """

    positions: Positions
    schema_ids: Positions
    bodies: pa.BinaryArray
    misfits: list[Misfit]


def unframe(values: pa.BinaryArray) -> Framed:
    """Take the headers off; no value is null."""
    bounds, data = bounds_and_data(values)
    starts, ends = bounds[:-1], bounds[1:]
    headed = ends - starts >= HEADER_BYTES
    headed[headed] = data[starts[headed]] == 0
    positions = np.flatnonzero(headed)
    misfits = [
        Misfit(int(at), "the value does not begin with a zero byte and a schema id")
        for at in np.flatnonzero(~headed)
    ]
    starts, ends = starts[positions], ends[positions]
    ids = data[starts[:, np.newaxis] + np.arange(1, HEADER_BYTES)]
    schema_ids = ids.copy().view(">u4").reshape(-1).astype(np.int64)
    return Framed(positions, schema_ids, gather(values, starts + HEADER_BYTES, ends), misfits)


def bounds_and_data(values: pa.BinaryArray) -> tuple[Positions, np.ndarray[Any, Any]]:
    """Start positions of values, with the end of the last; and the bytes.

    Both are views of the array's own memory.
    """
    offsets, data = values.buffers()[1:3]
    if offsets is None or not len(values):
        return np.zeros(1, np.int64), np.empty(0, np.uint8)
    bounds = np.frombuffer(offsets, np.int32, len(values) + 1, 4 * values.offset)
    content = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return bounds.astype(np.int64), content


def gather(values: pa.BinaryArray, starts: Positions, ends: Positions) -> pa.BinaryArray:
    """Parts of the bytes of `values`, ascending and apart from each other, as an array.

    Cuts the bytes into gaps and parts by one array of offsets, and takes every other one.
    """
    if not len(starts):
        return pa.array([], pa.binary())
    cuts = np.zeros(2 * len(starts) + 1, np.int32)
    cuts[1::2], cuts[2::2] = starts, ends
    data = values.buffers()[2]
    pieces = pa.BinaryArray.from_buffers(
        pa.binary(), 2 * len(starts), [None, pa.py_buffer(cuts), data]
    )
    return pieces.take(pa.array(np.arange(1, 2 * len(starts), 2)))


class WireFormat:
    """A format behind a header whose schema is not needed to read it, as JSON's is not."""

    def __init__(self, plain: ValueFormat) -> None:
        """Prepare.

        Args:
            plain: Reads what follows the header.
        """
        self.schema = plain.schema
        self.bare = plain.bare
        self._plain = plain

    def parse(self, values: pa.BinaryArray) -> Parsed:
        """The columns; misfits carry the id that their header has."""
        framed = unframe(values)
        parsed = self._plain.parse(framed.bodies)
        misfits = list(framed.misfits)
        for misfit in parsed.misfits:
            at = int(framed.positions[misfit.position])
            misfits.append(Misfit(at, misfit.reason, int(framed.schema_ids[misfit.position])))
        return Parsed(parsed.columns, sorted(misfits), parsed.behind, parsed.deletes)
