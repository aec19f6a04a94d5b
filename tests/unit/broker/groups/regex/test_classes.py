"""Sets of ASCII characters."""

import string

import pytest

from broker.groups.regex.classes import (
    FOLDS_INTO_ASCII,
    PERL_CLASSES,
    POSIX_CLASSES,
    UNICODE_CLASSES,
    fold,
    range_mask,
)


def characters(mask: int) -> str:
    return "".join(chr(code) for code in range(128) if mask >> code & 1)


def test_ranges_end_with_ascii() -> None:
    """Both ends included; what lies outside is nothing."""
    assert characters(range_mask(ord("a"), ord("e"))) == "abcde"
    assert characters(range_mask(ord("z"), 0x10FFFF)) == "z{|}~\x7f"
    assert range_mask(0x80, 0x10FFFF) == 0
    assert range_mask(0, 0x10FFFF).bit_count() == 128


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        (PERL_CLASSES["d"], string.digits),
        (PERL_CLASSES["s"], "\t\n\f\r "),
        (POSIX_CLASSES["space"], "\t\n\v\f\r "),
        (POSIX_CLASSES["xdigit"], "0123456789ABCDEFabcdef"),
        (POSIX_CLASSES["punct"], string.punctuation),
        (UNICODE_CLASSES["Lu"], string.ascii_uppercase),
        (UNICODE_CLASSES["N"], string.digits),
        (UNICODE_CLASSES["Sm"], "+<=>|~"),
        (UNICODE_CLASSES["Greek"], ""),
        (UNICODE_CLASSES["Latin"], string.ascii_uppercase + string.ascii_lowercase),
    ],
)
def test_named_sets(mask: int, expected: str) -> None:
    """A few of them; all are compared with RE2/J's elsewhere."""
    assert characters(mask) == expected


def test_other_cases() -> None:
    """Of letters only."""
    assert characters(fold(range_mask(ord("x"), ord("{")))) == "XYZxyz{"
    assert characters(fold(range_mask(ord("@"), ord("B")))) == "@ABab"
    assert characters(FOLDS_INTO_ASCII[ord("\N{KELVIN SIGN}")]) == "Kk"
    assert characters(FOLDS_INTO_ASCII[ord("\N{LATIN SMALL LETTER LONG S}")]) == "Ss"
