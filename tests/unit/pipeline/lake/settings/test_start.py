"""Where a table begins, as the settings say it."""

from datetime import UTC, datetime

import pytest
import yaml

from pipeline.lake.settings.start import Start, StartTimes, parse_start

NEW_YEAR_MS = 1_767_225_600_000


def parsed(text: str) -> Start:
    """As YAML hands it over."""
    return parse_start(yaml.safe_load(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("earliest", "earliest"),
        ("latest", "latest"),
        ("{0: 120, 3: 0}", {0: 120, 3: 0}),
        ("{timestamp: 2026-01-01T00:00:00Z}", StartTimes(NEW_YEAR_MS)),
        ("{timestamp: 2026-01-01 02:00:00+02:00}", StartTimes(NEW_YEAR_MS)),
        ("{timestamp: '2026-01-01T00:00:00Z'}", StartTimes(NEW_YEAR_MS)),
        ("{timestamp: 1767225600000}", StartTimes(NEW_YEAR_MS)),
        ("{timestamp: 0}", StartTimes(0)),
        (
            "{timestamp: {0: 2026-01-01T00:00:00Z, 2: 7}, strategy: latest}",
            StartTimes(None, {0: NEW_YEAR_MS, 2: 7}, latest_if_no_match=True),
        ),
        (
            "{timestamp: 5, strategy: error}",
            StartTimes(5, latest_if_no_match=False),
        ),
    ],
)
def test_a_start_is_a_word_offsets_or_times(text: str, expected: Start) -> None:
    assert parsed(text) == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("sometimes", "earliest, latest, a mapping"),
        ("7", "earliest, latest, a mapping"),
        ("", "earliest, latest, a mapping"),
        ("{}", "earliest, latest, a mapping"),
        ("{0: -1}", "earliest, latest, a mapping"),
        ("{-1: 5}", "earliest, latest, a mapping"),
        ("{a: 5}", "earliest, latest, a mapping"),
        ("{0: true}", "earliest, latest, a mapping"),
        ("{timestamp: 2026-01-01T00:00:00}", "with its zone"),
        ("{timestamp: 2026-01-01}", "with its zone"),
        ("{timestamp: yesterday}", "with its zone"),
        ("{timestamp: -1}", "with its zone"),
        ("{timestamp: 1969-12-31T23:00:00Z}", "with its zone"),
        ("{timestamp: }", "with its zone"),
        ("{strategy: latest}", "with its zone"),
        ("{timestamp: {}}", "a mapping of partitions to times"),
        ("{timestamp: {a: 5}}", "a mapping of partitions to times"),
        ("{timestamp: {0: soon}}", "with its zone"),
        ("{timestamp: 5, strategy: guess}", "strategy: error or latest"),
        ("{timestamp: 5, 0: 7}", "0: only timestamp and strategy"),
    ],
)
def test_what_is_none_is_told(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parsed(text)


def test_no_record_before_the_time_is_meant() -> None:
    """Records have milliseconds; a time between two of them means the later one."""
    between = datetime(2026, 1, 1, 0, 0, 0, 1, UTC)
    assert parse_start({"timestamp": between}) == StartTimes(NEW_YEAR_MS + 1)


def test_a_partitions_own_time_is_stronger() -> None:
    times = StartTimes(5, {1: 7})
    assert (times.of(0), times.of(1)) == (5, 7)
    assert StartTimes(None, {1: 7}).of(0) is None
