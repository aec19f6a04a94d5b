"""The `/metrics` page: values are collected on the loop in slices, text is rendered in a thread.

Five thousand partitions have tens of thousands of samples; writing them out takes longer than any
request may wait.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector, generate_latest
from prometheus_client.core import Metric

from broker.network.admin_http import Page

if TYPE_CHECKING:
    from broker.runtime.disk import Disk

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Source(Protocol):
    """A part of the broker that has metrics; yields to the event loop now and then."""

    def collect(self) -> AsyncIterator[Metric]:
        """Its families as they stand."""
        ...


class _Collected:
    """A prometheus-client collector: returns families that were collected before."""

    def __init__(self, families: Sequence[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        yield from self._families


def render(families: Sequence[Metric]) -> bytes:
    """The families and those of the process, in Prometheus' text format."""
    registry = CollectorRegistry(auto_describe=False)
    ProcessCollector(registry=registry)
    GCCollector(registry=registry)
    registry.register(_Collected(families))
    return generate_latest(registry)


class MetricsPage:
    """Answers `/metrics`; scrapes that come together share one collection."""

    def __init__(self, sources: Sequence[Source], disk: "Disk") -> None:
        self._sources = sources
        self._disk = disk
        self._lock = asyncio.Lock()
        self.scrapes = 0

    async def page(self) -> Page:
        """Collect and render."""
        async with self._lock:
            self.scrapes += 1
            families: list[Metric] = []
            for source in self._sources:
                async for family in source.collect():
                    families.append(family)  # noqa: PERF401  because an async comprehension would not name the step
                await asyncio.sleep(0)
            body = await self._disk.run(render, families)
        return Page(200, body, CONTENT_TYPE)
