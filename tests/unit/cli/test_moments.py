"""Moments and durations are ISO 8601, and nothing else passes for one."""

import argparse

import pytest

from cli.moments import datetime_ms, duration_ms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01T00:00:01", 1000),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-01T00:00:00.250Z", 250),
        ("1970-01-02", 86_400_000),
    ],
)
def test_moments_are_utc_without_a_zone(text: str, expected: int) -> None:
    """As in Kafka's tools; a zone counts."""
    assert datetime_ms(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PT15S", 15_000),
        ("PT0.5S", 500),
        ("P1DT2H30M", 95_400_000),
        ("P2W", 1_209_600_000),
        ("pt1h", 3_600_000),
    ],
)
def test_durations_have_days_and_times(text: str, expected: int) -> None:
    """Weeks too, and small letters."""
    assert duration_ms(text) == expected


@pytest.mark.parametrize("text", ["", "P", "PT", "P1DT", "3h", "P1M", "P1Y", "-PT1S", "PT1S1H"])
def test_other_durations_are_refused(text: str) -> None:
    """Months and years have no fixed length; nothing at all is no duration."""
    with pytest.raises(argparse.ArgumentTypeError, match="is not a duration"):
        duration_ms(text)


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01", "12:00"])
def test_other_moments_are_refused(text: str) -> None:
    """With an example of what would be right."""
    with pytest.raises(argparse.ArgumentTypeError, match="2026-01-31T12:00:00"):
        datetime_ms(text)
