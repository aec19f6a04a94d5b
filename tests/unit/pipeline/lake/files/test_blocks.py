"""Blocks depend on rows, not on how they came."""

from itertools import pairwise

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pipeline.lake.files.blocks import in_blocks, row_bytes

rows = st.lists(st.none() | st.binary(max_size=30), max_size=60)


def batch_of(values: list[bytes | None], first: int) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "key": pa.array([None] * len(values), pa.binary()),
            "value": pa.array(values, pa.binary()),
            "offset": pa.array(range(first, first + len(values)), pa.int64()),
        }
    )


def cut(values: list[bytes | None], cuts: list[int]) -> list[pa.RecordBatch]:
    whole = batch_of(values, 0)
    places = sorted({min(c, len(values)) for c in cuts} | {0, len(values)})
    return [whole.slice(a, b - a) for a, b in pairwise(places)]


@given(rows, st.lists(st.integers(0, 60), max_size=8), st.integers(1, 80), st.integers(1, 20))
def test_blocks_end_where_the_rows_say(
    values: list[bytes | None], cuts: list[int], block_bytes: int, block_rows: int
) -> None:
    """Otherwise a repeated task would make other bytes under the same name."""

    def blocks(batches: list[pa.RecordBatch]) -> list[list[int]]:
        found = in_blocks(batches, block_bytes=block_bytes, block_rows=block_rows)
        return [block.column("offset").to_pylist() for block in found]

    whole = blocks([batch_of(values, 0)])
    assert blocks(cut(values, cuts)) == whole
    assert [o for block in whole for o in block] == list(range(len(values)))
    assert all(0 < len(block) <= block_rows for block in whole)


@given(rows, st.integers(1, 80))
def test_a_block_has_its_bytes_with_its_last_row(
    values: list[bytes | None], block_bytes: int
) -> None:
    blocks = list(in_blocks([batch_of(values, 0)], block_bytes=block_bytes))
    for number, block in enumerate(blocks):
        sizes = row_bytes(block)
        assert sizes[:-1].sum() < block_bytes
        assert sizes.sum() >= block_bytes or number == len(blocks) - 1
