"""Which keys every store takes."""

import pytest

from tiered.object_store.keys import (
    KEY_BYTES_MAX,
    UnusableKeyError,
    check_key,
    check_prefix,
)


@pytest.mark.parametrize("key", ["a", "a/b", "topic-id/0/00-x.log", "...", "a..b/c", "é" * 512])
def test_usable_keys(key: str) -> None:
    assert check_key(key) == key
    assert check_prefix(key) == key


@pytest.mark.parametrize(
    "key",
    [
        "",
        "/a",
        "a/",
        "a//b",
        ".",
        "..",
        "../a",
        "a/../b",
        "a/./b",
        "a\0b",
        "a\nb",
        "\x7f",
        "\ud800",
        "é" * 513,
        "a" * (KEY_BYTES_MAX + 1),
    ],
)
def test_unusable_keys(key: str) -> None:
    with pytest.raises(UnusableKeyError):
        check_key(key)


@pytest.mark.parametrize("prefix", ["", "a/", "a/b", "a/.", "a/..", "."])
def test_a_prefix_may_end_anywhere(prefix: str) -> None:
    """`a/..` may go on as `a/..b`."""
    assert check_prefix(prefix) == prefix


@pytest.mark.parametrize("prefix", ["/", "//", "a//", "../", "a/../", "./x", "a\0", "a" * 1025])
def test_unusable_prefixes(prefix: str) -> None:
    with pytest.raises(UnusableKeyError):
        check_prefix(prefix)
