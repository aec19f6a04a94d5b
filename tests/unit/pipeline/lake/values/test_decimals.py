"""Decimals from bytes."""

from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.lake.values.decimals import decimals_of


@given(st.integers(-(10**38) + 1, 10**38 - 1), st.integers(0, 38))
def test_all_digits_are_kept(unscaled: int, scale: int) -> None:
    """Whatever Python's own context of decimals is."""
    data = unscaled.to_bytes(20, "big", signed=True)
    found = decimals_of([data, None], pa.decimal128(38, scale)).to_pylist()
    assert found == [Decimal((unscaled < 0, tuple(map(int, str(abs(unscaled)))), -scale)), None]


def test_too_many_digits_are_an_error() -> None:
    """They would be another number."""
    with pytest.raises(pa.ArrowInvalid, match="more than 2 digits"):
        decimals_of([b"\x64"], pa.decimal128(2, 0))
    assert decimals_of([b"", b"\x63"], pa.decimal128(2, 0)).to_pylist() == [0, 99]
