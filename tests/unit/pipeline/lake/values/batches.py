"""Batches of records as the reader gives them, made from a few values."""

from collections.abc import Sequence

import pyarrow as pa

from pipeline.lake.schemas.columns import HEADERS, TIMESTAMP


def batch(
    values: Sequence[bytes | None],
    *,
    keys: Sequence[bytes | None] | None = None,
    start_offset: int = 100,
) -> pa.RecordBatch:
    """Records of topic `orders`, partition 3, at consecutive offsets; timestamp = offset in ms."""
    offsets = range(start_offset, start_offset + len(values))
    columns = {
        "key": pa.array(keys if keys is not None else [None] * len(values), pa.binary()),
        "value": pa.array(values, pa.binary()),
        "topic": pa.array(["orders"] * len(values), pa.string()),
        "partition": pa.array([3] * len(values), pa.int32()),
        "offset": pa.array(offsets, pa.int64()),
        "timestamp": pa.array([offset * 1000 for offset in offsets], TIMESTAMP),
        "timestampType": pa.array([0] * len(values), pa.int32()),
        "headers": pa.array([[("h", b"1")]] * len(values), HEADERS),
    }
    return pa.RecordBatch.from_pydict(columns)
