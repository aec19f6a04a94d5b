"""Bytes to text as the JVM decodes UTF-8: what is malformed becomes U+FFFD.

Header keys are decoded so by Kafka's consumer, hence in the rows of Spark's Kafka source. Python
replaces in the same places but for one: the JVM takes the three bytes of an encoded surrogate
(ED A0..BF ..), which no UTF-8 has, as one malformed unit, Python as up to three.

Source: OpenJDK, String.java (decodeUTF8_UTF16, malformed3).
"""

import codecs
from typing import Final


def decode_java_utf8(data: bytes) -> str:
    """`new String(data, StandardCharsets.UTF_8)`; never fails."""
    return data.decode("utf-8", _NAME)


def _replace(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    data, start, end = error.object, error.start, error.end
    if data[start] == 0xED and 0xA0 <= int.from_bytes(data[start + 1 : start + 2]) <= 0xBF:
        end = start + 2
        if 0x80 <= int.from_bytes(data[end : end + 1]) <= 0xBF:
            end += 1
    return "\N{REPLACEMENT CHARACTER}", end


_NAME: Final = "varve-java-utf-8"
codecs.register_error(_NAME, _replace)


__all__ = ["decode_java_utf8"]
