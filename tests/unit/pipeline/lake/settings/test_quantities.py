"""Numbers with units, as people write them."""

import pytest

from pipeline.lake.settings.quantities import parse_bytes, parse_ms


@pytest.mark.parametrize(
    ("given", "expected"),
    [("4 GiB", 4 << 30), ("500MB", 500_000_000), (17, 17), ("1.5 KiB", 1536), ("1 b", 1)],
)
def test_a_size_has_a_unit_or_is_bytes(given: object, expected: int) -> None:
    assert parse_bytes(given) == expected


@pytest.mark.parametrize("given", ["4 XiB", "", "GiB", "-1", None, True, 1.5, "1e9", "4 GiB x"])
def test_what_is_no_size_is_refused(given: object) -> None:
    with pytest.raises(ValueError, match="128 MiB"):
        parse_bytes(given)


def test_a_duration_needs_a_unit() -> None:
    """60 might be minutes to one reader and milliseconds to another."""
    assert parse_ms("60 s") == 60_000
    assert parse_ms("5 min") == 300_000
    assert parse_ms("250ms") == 250
    for given in (60, "60", "60 hours"):
        with pytest.raises(ValueError, match="60 s"):
            parse_ms(given)
