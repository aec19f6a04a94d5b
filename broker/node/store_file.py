"""The metadata store's file on a node, and the error of one that must not be used or made."""

from typing import Final

METADATA_FILE: Final = "varve-metadata.sqlite"
"""The store's file, in one of the log directories or in `metadata.log.dir`."""

NEW_SUFFIX: Final = ".new"
"""Suffix of a store that is being made; one that is found was never used."""

SQLITE_SUFFIXES: Final = ("", "-wal", "-shm", "-journal")
"""Of the files that SQLite keeps beside each other."""

ADOPT: Final = "`varve dirs adopt`"
"""What makes a store of the partitions that are there, on an operator's command."""


class NodeStoreError(Exception):
    """The metadata store is missing, there twice, or another's; the broker must not start."""
