"""Fields gathered into Arrow's binary arrays, without C."""

from typing import Any

import numpy as np
import pyarrow as pa

from pipeline.read.decode.record_table import Bytes, Int32s


def take_bytes(data: Bytes, starts: Int32s, sizes: Int32s) -> Any:
    """Copy fields back to back, without a loop.

    The fields and the gaps between them are one array over the data, of which every other element
    is taken.

    Args:
        data: Where the fields lie.
        starts: Ascending; fields do not overlap.
        sizes: -1 is null.
    """
    rows = len(starts)
    if rows == 0:
        return pa.nulls(0, pa.binary())
    offsets = np.empty(2 * rows + 1, np.int32)
    offsets[0:-1:2] = starts
    offsets[1::2] = starts + np.maximum(sizes, 0)
    offsets[-1] = offsets[-2]
    both = pa.Array.from_buffers(
        pa.binary(), 2 * rows, [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )
    index = np.arange(0, 2 * rows, 2, dtype=np.int32)
    valid = sizes >= 0
    bits = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return both.take(pa.Array.from_buffers(pa.int32(), rows, [bits, pa.py_buffer(index)]))


__all__ = ["take_bytes"]
