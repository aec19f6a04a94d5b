"""Spark's data source `varve`: a topic's rows from its bucket and its broker.

Spark finds it by itself (`pyspark_varve.DefaultSource`), in every session and in SQL:

    spark.read.format("varve").option("subscribe", "orders").load("s3://bucket/prefix")
    CREATE TEMPORARY VIEW orders USING varve OPTIONS (path 's3://bucket/prefix', subscribe 'orders')

What crosses to executors is pickled: options and pieces, no client, no file, no lock.
"""

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType
from typing_extensions import override

from pipeline.plan.errors import OptionsError
from pipeline.source.batch_reader import BatchReader, FilteringBatchReader
from pipeline.source.options.columns import schema_text, simple_schema_text
from pipeline.source.options.options import Query, SourceOptions, parse_options
from pipeline.source.stream_reader import StreamReader


class VarveDataSource(DataSource):
    """See the module."""

    @classmethod
    @override
    def name(cls) -> str:
        """The name for `format(...)` and `USING`."""
        return "varve"

    @override
    def schema(self) -> str:
        """The columns that the options ask for.

        Raises:
            OptionsError: Every mistake in the options.
        """
        return schema_text(parse_options(self.options).columns)

    @override
    def reader(self, schema: StructType) -> DataSourceReader:
        """For a batch query.

        Raises:
            OptionsError: Every mistake in the options.
        """
        options = self._checked(schema, Query.BATCH)
        return FilteringBatchReader(options) if options.push_filters else BatchReader(options)

    @override
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """For a streaming query.

        Raises:
            OptionsError: Every mistake in the options.
        """
        return StreamReader(self._checked(schema, Query.STREAM))

    def _checked(self, schema: StructType, query: Query) -> SourceOptions:
        """Options of a query whose schema is theirs: Spark lets users give one of their own."""
        options = parse_options(self.options, query)
        own = simple_schema_text(options.columns)
        if schema.simpleString() != own:
            raise OptionsError(
                [f"varve has a fixed schema, which cannot be given: {own} (columns chooses of it)"]
            )
        return options
