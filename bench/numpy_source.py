"""`format("varve-numpy")`: our source as it is where nothing is compiled."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType
from typing_extensions import override

from pipeline.read.piece.piece_rows import read_piece
from pipeline.source.batch_reader import BatchReader
from pipeline.source.data_source import VarveDataSource
from pipeline.source.executor import read_options
from pipeline.source.options.options import Query, parse_options

if TYPE_CHECKING:
    import pyarrow as pa


class NumpySource(VarveDataSource):
    """See the module; register it with `spark.dataSource.register`."""

    @classmethod
    @override
    def name(cls) -> str:
        return "varve-numpy"

    @override
    def reader(self, schema: StructType) -> DataSourceReader:
        return _NumpyReader(parse_options(self.options, Query.BATCH))


class _NumpyReader(BatchReader):
    @override
    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        if partition.value is not None:
            yield from read_piece(
                partition.value, read_options(self._options)._replace(kernel="numpy")
            )
