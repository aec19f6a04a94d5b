"""Keys that every object store takes, so that what works with one works with another.

A key is 1 to 1,024 bytes of UTF-8 (the limit of S3) in parts separated by `/`. No part is empty,
`.` or `..`: HTTP clients and servers resolve those in a path, and a directory must not be left.
Control characters are refused, since XML listings cannot carry them all.
"""

from typing import Final

from tiered.errors import RemoteStorageError

KEY_BYTES_MAX: Final = 1024

_FORBIDDEN_PARTS: Final = frozenset(("", ".", ".."))


class UnusableKeyError(RemoteStorageError):
    """A key or prefix that no store takes: a mistake of the caller, or forged metadata."""

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(f"unusable key {key[:200]!r}: {problem}")


def check_key(key: str) -> str:
    """The key, if it can be used; raises UnusableKeyError."""
    _check_text(key)
    if not _FORBIDDEN_PARTS.isdisjoint(key.split("/")):
        raise UnusableKeyError(key, "it has an empty part, `.` or `..`")
    return key


def check_prefix(prefix: str) -> str:
    """A prefix, which may be empty and may end anywhere; raises UnusableKeyError."""
    _check_text(prefix)
    *folders, _ = prefix.split("/")
    if not _FORBIDDEN_PARTS.isdisjoint(folders):
        raise UnusableKeyError(prefix, "it has an empty part, `.` or `..`")
    return prefix


def _check_text(text: str) -> None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise UnusableKeyError(text, "it is not Unicode") from None
    if size > KEY_BYTES_MAX:
        raise UnusableKeyError(text, f"it is longer than {KEY_BYTES_MAX} bytes")
    if any(character < " " or character == "\x7f" for character in text):
        raise UnusableKeyError(text, "it has control characters")
