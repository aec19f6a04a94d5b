"""Broken values are found, and the others stay in blocks."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pipeline.lake.values.block_parsing import (
    MAX_BLOCK_RECORDS,
    BrokenBlockError,
    parse_in_blocks,
)


@given(
    st.lists(st.sampled_from([b"", b"ok", b"longer", b"bad"]), max_size=40),
    st.integers(1, 30),
    st.sampled_from(["none", "right", "wild"]),
)
def test_every_value_is_taken_or_told_once(
    values: list[bytes], block_bytes: int, hint: str
) -> None:
    """In order, whatever the reader says of where it failed."""

    def read(block: pa.BinaryArray) -> list[bytes]:
        found: list[bytes] = block.to_pylist()
        if b"bad" in found:
            rows = {"none": None, "right": found.index(b"bad"), "wild": len(found) // 2}
            raise BrokenBlockError("bad", rows[hint])
        return found

    parts, reasons = parse_in_blocks(pa.array(values, pa.binary()), read, block_bytes)
    assert [value for part in parts for value in part] == [v for v in values if v != b"bad"]
    assert list(reasons) == [at for at, value in enumerate(values) if value == b"bad"]


def test_blocks_are_bounded() -> None:
    """By bytes and by records; a large value is a block by itself."""
    sizes: list[int] = []

    def read(block: pa.BinaryArray) -> int:
        sizes.append(len(block))
        return len(block)

    parse_in_blocks(pa.array([b"x" * 9] * 10 + [b"x" * 99, b"x"], pa.binary()), read, 30)
    assert sizes == [3, 3, 3, 1, 1, 1]
    sizes.clear()
    parse_in_blocks(pa.array([b""] * (MAX_BLOCK_RECORDS + 1), pa.binary()), read)
    assert sizes == [MAX_BLOCK_RECORDS, 1]
