"""Frame sizes."""

import pytest

from protocol.errors import DecodeError
from protocol.framing import check_frame_size, frame, frame_size


def test_frame_puts_the_size_before_the_pieces() -> None:
    """The size does not count itself."""
    assert frame(b"ab", b"", b"cde") == b"\x00\x00\x00\x05abcde"


@pytest.mark.parametrize("size", [8, 100])
def test_frames_up_to_the_maximum_pass(size: int) -> None:
    """Both ends are inclusive."""
    assert check_frame_size(size, frame_size_max=100) == size


@pytest.mark.parametrize("size", [-1, -(1 << 31), 0, 7, 101, (1 << 31) - 1])
def test_other_sizes_are_refused(size: int) -> None:
    """Negative, too small for a header, above the maximum."""
    with pytest.raises(DecodeError, match=str(size)):
        check_frame_size(size, frame_size_max=100)


def test_size_of_a_response_in_pieces() -> None:
    """Every kind of buffer counts in bytes."""
    assert frame_size([b"ab", bytearray(3), memoryview(b"four")]) == 9
