"""One page from several sources, made without holding up the loop."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from prometheus_client.core import Metric

from broker.metrics.families import gauge
from broker.metrics.page import MetricsPage, render
from broker.runtime.disk import Disk


class Source:
    """One gauge, and how often it was asked for."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.collected = 0
        self.running = 0

    async def collect(self) -> AsyncIterator[Metric]:
        self.running += 1
        assert self.running == 1, "collected twice at once"
        self.collected += 1
        await asyncio.sleep(0)
        yield gauge(self.name, "G.", (), [((), self.collected)])
        self.running -= 1


@pytest.fixture
async def disk() -> AsyncIterator[Disk]:
    made = Disk(1)
    yield made
    made.close()


async def test_all_sources_and_the_process_are_on_it(disk: Disk) -> None:
    found = await MetricsPage([Source("varve_a"), Source("varve_b")], disk).page()
    assert found.status == 200
    assert found.content_type.startswith("text/plain; version=0.0.4")
    lines = found.body.decode().splitlines()
    assert "varve_a 1.0" in lines
    assert "varve_b 1.0" in lines
    assert any(line.startswith("process_resident_memory_bytes ") for line in lines)
    assert any(line.startswith("python_gc_collections_total{") for line in lines)


async def test_scrapes_at_once_follow_each_other(disk: Disk) -> None:
    """Each has figures of its own time."""
    source = Source("varve_a")
    page = MetricsPage([source], disk)
    found = await asyncio.gather(*(page.page() for _ in range(3)))
    assert sorted(b"varve_a %d.0" % n in f.body for n, f in enumerate(found, 1)) == [True] * 3
    assert page.scrapes == source.collected == 3


async def test_the_text_is_made_in_a_thread() -> None:
    """Tens of thousands of samples take longer to write than a request may wait."""
    handed: list[Callable[..., object]] = []

    class Threads:
        async def run(self, function: Callable[..., bytes], *arguments: object) -> bytes:
            handed.append(function)
            return function(*arguments)

    threads: Any = Threads()
    found = await MetricsPage([Source("varve_a")], threads).page()
    assert handed == [render]
    assert b"varve_a 1.0" in found.body


async def test_a_source_that_fails_does_not_block_the_next_scrape(disk: Disk) -> None:
    class Broken(Source):
        async def collect(self) -> AsyncIterator[Metric]:
            if self.collected == 0:
                self.collected = 1
                raise ValueError("a bug")
            yield gauge(self.name, "G.", (), [((), 1)])

    page = MetricsPage([Broken("varve_a")], disk)
    with pytest.raises(ValueError, match="a bug"):
        await page.page()
    assert b"varve_a 1.0" in (await page.page()).body
