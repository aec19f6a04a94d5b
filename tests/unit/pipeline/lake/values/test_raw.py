"""Bytes and text as they are."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pipeline.lake.values.raw import RawFormat, StringFormat


@given(st.lists(st.binary(max_size=4)))
def test_text_is_what_is_utf8(values: list[bytes]) -> None:
    """As Python's own decoder sees it."""
    parsed = StringFormat().parse(pa.array(values, pa.binary()))
    texts, out = [], []
    for at, value in enumerate(values):
        try:
            texts.append(value.decode())
        except UnicodeDecodeError:
            out.append(at)
    assert parsed.columns.column("value").to_pylist() == texts
    assert [misfit.position for misfit in parsed.misfits] == out


def test_bytes_are_not_looked_at() -> None:
    """Whatever they are."""
    values = pa.array([b"\xff", b""], pa.binary())
    assert RawFormat().parse(values).columns.column("value").equals(values)
