"""Metrics of the code itself: whether the hot path is compiled."""

from collections.abc import AsyncIterator

from prometheus_client.core import Metric

from broker.metrics.families import gauge
from native.library import Library
from native.loader import CodePath


class CodePathMetrics:
    """See `collect`."""

    def __init__(self, path: CodePath, records: Library) -> None:
        self._path = path
        self._records = records

    async def collect(self) -> AsyncIterator[Metric]:
        """Families of this part."""
        path = self._path
        yield gauge(
            "varve_code_info",
            "Always 1; whether modules of the hot path are compiled or Python's own, and why.",
            ("path", "reason"),
            [((path.name, path.reason), 1)],
        )
        yield gauge(
            "varve_code_compiled_modules",
            "Modules that run compiled; 0: all are Python's own.",
            (),
            [((), path.modules)],
        )
        records = self._records
        yield gauge(
            "varve_record_walks_info",
            "Always 1; whether validation of records and compaction are compiled, and why not.",
            ("path", "reason"),
            [((records.path, records.problem), 1)],
        )
