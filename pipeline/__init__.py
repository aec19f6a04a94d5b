"""Spark over the tiered log: a topic's whole life as rows, and tables that are kept behind it.

    plan      which segments form a log, where it begins and ends, what is aborted, how it is cut
    read      from chunks and Fetch answers to Arrow rows
    source    Spark's data source `varve`
    lake      jobs that keep Delta, Iceberg and Parquet tables

PySpark is imported in `source` and `lake` only.
"""

from collections.abc import Mapping


def handover(options: Mapping[str, str]) -> str:
    """End offsets of the bucket, as `startingOffsets` for Spark's Kafka source.

    See `pipeline.source.handover`; what it needs is imported when it is called.
    """
    from pipeline.source.handover import handover as ends

    return ends(options)
