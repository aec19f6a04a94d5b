"""Spark over the tiered log: a topic's whole life as rows, and tables that are kept behind it.

    plan      which segments form a log, where it begins and ends, what is aborted, how it is cut
    read      from chunks and Fetch answers to Arrow rows
    source    Spark's data source `varve`
    lake      jobs that keep Delta, Iceberg and Parquet tables

PySpark is imported in `source` and `lake` only.
"""
