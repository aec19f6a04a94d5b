"""Fields: what is written is read; what cannot be is an error of the frame, and nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.controller.store.unix.fields import FieldReader, FieldWriter, FrameError
from tests.unit.broker.controller.store.unix.strategies import KEYS


@given(st.integers(0, 255), st.integers(0, 2**64 - 1), st.binary(), KEYS, st.booleans())
def test_what_is_written_is_read(
    small: int, large: int, blob: bytes, text: str, flag: bool
) -> None:
    writer = FieldWriter()
    writer.u8(small)
    writer.u16(small)
    writer.u32(small)
    writer.u64(large)
    writer.i64(-small)
    writer.blob(blob)
    writer.text(text)
    writer.flag(flag)
    reader = FieldReader(writer.done())
    assert [reader.u8(), reader.u16(), reader.u32(), reader.u64(), reader.i64()] == [
        small,
        small,
        small,
        large,
        -small,
    ]
    assert (reader.blob(), reader.text(), reader.flag()) == (blob, text, flag)
    reader.end()


@pytest.mark.parametrize(
    ("data", "field", "reason"),
    [
        (b"\x00\x00\x00", "u32", "ends within a number"),
        (b"\x00\x00\x00\x05abc", "blob", "a field of 5 bytes, 3 are there"),
        (b"\xff\xff\xff\xff", "blob", "a field of 4294967295 bytes, 0 are there"),
        (b"\x00\x00\x00\x01\xff", "text", "no UTF-8"),
        (b"\x02", "flag", "a flag of 2"),
    ],
)
def test_what_cannot_be_read_is_said_precisely(data: bytes, field: str, reason: str) -> None:
    with pytest.raises(FrameError, match=reason):
        getattr(FieldReader(data), field)()


def test_nothing_may_be_left() -> None:
    reader = FieldReader(b"\x01\x02")
    reader.u8()
    with pytest.raises(FrameError, match="1 bytes behind the last field"):
        reader.end()
