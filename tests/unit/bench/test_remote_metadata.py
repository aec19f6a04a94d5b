"""A start does not depend on the age of the metadata topic."""

from pathlib import Path

import pytest

from bench.remote_metadata import measure


async def test_a_small_history_is_read_in_all_three_ways(tmp_path: Path) -> None:
    starts = await measure(
        tmp_path,
        events=2_000,
        live=100,
        metadata_partitions=4,
        user_partitions=10,
        delta=50,
    )
    read = {name: start.events_read for name, start in starts.items()}
    assert read["clean stop"] == 0
    assert 4 * 50 <= read["kill"] <= 4 * 50 + 4
    assert read["no snapshots"] >= 2_000


@pytest.mark.slow
async def test_a_million_events_cost_nothing_at_a_start(tmp_path: Path) -> None:
    """Counted in events that are read, and beside a start that reads them all: not in seconds.

    On an idle machine it takes 0.2 s with five thousand live segments.
    """
    starts = await measure(
        tmp_path,
        events=1_000_000,
        live=5_000,
        metadata_partitions=50,
        user_partitions=500,
        delta=1_000,
        per_batch=100,
    )
    assert starts["clean stop"].events_read == 0
    assert starts["clean stop"].segments == 5_000
    assert 50 * 1_000 <= starts["kill"].events_read <= 50 * 1_000 + 50
    assert starts["no snapshots"].events_read >= 1_000_000
    assert starts["clean stop"].seconds <= starts["no snapshots"].seconds / 5
    # CPU of one turn of the loop. In one go it would be some hundreds of milliseconds.
    assert starts["clean stop"].stall_ms <= 50.0
