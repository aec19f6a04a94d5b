"""Snapshots of the kind `replace`, which pyiceberg 0.12 does not make by itself.

Files are added and removed and the table's rows stay: what reads a table's changes passes such a
snapshot over, where it would refuse an `overwrite`. All but the word is pyiceberg's overwrite.
"""

from collections.abc import Mapping
from typing import Any

from pyiceberg.table.snapshots import Operation, Summary
from pyiceberg.table.update.snapshot import _MergeAppendFiles, _OverwriteFiles
from typing_extensions import override


class _ReplaceFiles(_OverwriteFiles):
    @override
    def _summary(self, snapshot_properties: dict[str, str] | None = None) -> Summary:
        return _as_replace(super()._summary(snapshot_properties or {}))


class _ReplaceManifests(_MergeAppendFiles):
    @override
    def _summary(self, snapshot_properties: dict[str, str] | None = None) -> Summary:
        return _as_replace(super()._summary(snapshot_properties or {}))


def _as_replace(found: Summary) -> Summary:
    return Summary(Operation.REPLACE, **found.additional_properties)


def replace_files(transaction: Any, properties: Mapping[str, str]) -> Any:
    """A context that collects files to add and to remove, and commits at its end."""
    return _ReplaceFiles(
        operation=Operation.OVERWRITE,
        transaction=transaction,
        io=transaction._table.io,
        snapshot_properties=dict(properties),
    )


def replace_manifests(transaction: Any, properties: Mapping[str, str]) -> Any:
    """A context that merges small manifests at its end, and changes no file."""
    found = _ReplaceManifests(
        operation=Operation.APPEND,
        transaction=transaction,
        io=transaction._table.io,
        snapshot_properties=dict(properties),
    )
    # Whatever the table's properties say of appends: this is what it is for.
    found._merge_enabled, found._min_count_to_merge = True, 2
    return found
