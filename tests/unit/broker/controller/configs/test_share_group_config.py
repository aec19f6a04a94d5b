"""Durations of `by_duration`."""

import pytest

from broker.controller.configs.share_group_config import duration_ms


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("PT1H", 3_600_000),
        ("P1D", 86_400_000),
        ("P2DT3H4M5.5S", 183_845_500),
        ("pt0.001s", 1),
    ],
)
def test_durations(text: str, ms: int) -> None:
    assert duration_ms(f"by_duration:{text}") == ms


@pytest.mark.parametrize("text", ["", "P", "PT", "1H", "P1H", "PT1", "P1DT", "earliest"])
def test_what_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="no duration"):
        duration_ms(f"by_duration:{text}")
