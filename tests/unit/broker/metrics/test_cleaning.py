"""What is told of cleaning processes."""

from types import SimpleNamespace
from typing import Any

from broker.metrics.cleaning import CleaningMetrics


async def samples(cleaners: Any) -> dict[str, float]:
    return {
        sample.name: sample.value
        async for family in CleaningMetrics(cleaners).collect()
        for sample in family.samples
    }


async def test_processes_are_counted() -> None:
    cleaners = SimpleNamespace(running=2, started=5, lost=1)
    assert await samples(cleaners) == {
        "varve_cleaning_processes": 2,
        "varve_cleaning_processes_started_total": 5,
        "varve_cleaning_processes_lost_total": 1,
    }


async def test_without_processes_there_is_nothing_to_tell() -> None:
    assert await samples(None) == {}
