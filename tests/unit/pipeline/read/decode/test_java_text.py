"""Text as the JVM decodes it; the examples are what OpenJDK 17 gave."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.read.decode.java_text import decode_java_utf8

BAD = "\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", ""),
        (b"caf\xc3\xa9", "caf\u00e9"),
        (b"\xff", BAD),
        (b"\xc3", BAD),
        (b"\xc0\x80", BAD * 2),
        (b"\xe2\x82", BAD),
        (b"\xe2\x82A", BAD + "A"),
        (b"\xe0\x80\x80", BAD * 3),
        (b"\xed\xa0\x80", BAD),
        (b"\xed\xa0", BAD),
        (b"\xed\xa0A", BAD + "A"),
        (b"\xed\xbf\xbf\xed", BAD * 2),
        (b"\xed\x41", BAD + "A"),
        (b"\xf0\x9f\x98", BAD),
        (b"\xf0\x80\x80\x80", BAD * 4),
        (b"\xf4\x90\x80\x80", BAD * 4),
        (b"\xf5\x80", BAD * 2),
    ],
)
def test_what_is_malformed_is_replaced(data: bytes, text: str) -> None:
    """An encoded surrogate by one character, where Python has one for each byte."""
    assert decode_java_utf8(data) == text


@given(st.text())
def test_utf8_is_utf8(text: str) -> None:
    """Nothing is replaced that need not be."""
    assert decode_java_utf8(text.encode()) == text
