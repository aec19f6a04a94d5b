"""Histories by the table's kind."""

from pipeline.lake.maintain.delta_history import DeltaHistory
from pipeline.lake.maintain.history import History
from pipeline.lake.maintain.iceberg_history import IcebergHistory
from pipeline.lake.maintain.parquet_history import ParquetHistory
from pipeline.lake.sinks.base import Sink
from pipeline.lake.sinks.delta import DeltaSink
from pipeline.lake.sinks.iceberg import IcebergSink
from pipeline.lake.sinks.parquet import ParquetSink


def history_of(sink: Sink) -> History:
    """Of a table of any kind."""
    if isinstance(sink, DeltaSink):
        return DeltaHistory(sink)
    if isinstance(sink, IcebergSink):
        return IcebergHistory(sink)
    assert isinstance(sink, ParquetSink)
    return ParquetHistory(sink)
