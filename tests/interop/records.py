"""The records every client sends and every client must get back unchanged."""

from typing import NamedTuple

Headers = tuple[tuple[str, bytes | None], ...]

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


class Sent(NamedTuple):
    """A record as an application sees it."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()


def sample(count: int = 40, *, null_headers: bool = True) -> list[Sent]:
    """Keys, headers, nulls, empty and larger values, among ordinary records."""
    last: Headers = (("null", None),) if null_headers else ()
    special = [
        Sent(None, b"no key"),
        Sent(b"", b"empty key"),
        Sent(b"tombstone", None),
        Sent(b"empty value", b""),
        Sent(b"headers", b"v", (("a", b"1"), ("a", b"2"), ("empty", b""), *last)),
        Sent(b"unicode header", b"v", (("näme-☃", "wert-☃".encode()),)),
        Sent(b"\x00\xff binary", bytes(range(256))),
        Sent(b"compressible", b"abc" * 20_000),
    ]
    ordinary = [Sent(b"k%d" % n, b"value %d" % n) for n in range(count - len(special))]
    return special + ordinary
