"""Spark finds data sources in modules named `pyspark_*` by itself: this one is `varve`."""

from pipeline.source.data_source import VarveDataSource


class DefaultSource(VarveDataSource):
    """What `format("varve")` and `USING varve` mean, in every session, without registration."""
