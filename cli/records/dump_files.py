"""Which reader turns a file of a data directory into rows, for `varve dump-log`."""

import os
from collections.abc import Callable, Iterator

from cli.records.dump_indexes import read_offset_index, read_time_index, read_transaction_index
from cli.records.dump_log_file import DumpOptions, read_log
from cli.records.dump_rows import Row
from cli.records.dump_small_files import (
    read_clean_shutdown_file,
    read_epoch_checkpoint,
    read_meta_properties_file,
    read_offset_checkpoint,
    read_partition_metadata_file,
    read_snapshot,
)
from storage.checkpoints.checkpoint_files import (
    CLEANER_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LEADER_EPOCH_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    REMOTE_OFFSET_CHECKPOINT,
)
from storage.checkpoints.clean_shutdown import CLEAN_SHUTDOWN_FILE
from storage.checkpoints.meta_properties import META_PROPERTIES
from storage.checkpoints.partition_metadata import PARTITION_METADATA
from storage.types.log_files import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    parse_log_file_name,
)


def reader_for(path: str, options: DumpOptions) -> Callable[[str], Iterator[Row]] | None:
    """The reader of a file of this name; None for an unknown kind of file."""
    name = os.path.basename(path)
    by_name: dict[str, Callable[[str], Iterator[Row]]] = {
        RECOVERY_POINT_CHECKPOINT: read_offset_checkpoint,
        LOG_START_OFFSET_CHECKPOINT: read_offset_checkpoint,
        HIGH_WATERMARK_CHECKPOINT: read_offset_checkpoint,
        CLEANER_CHECKPOINT: read_offset_checkpoint,
        REMOTE_OFFSET_CHECKPOINT: read_offset_checkpoint,
        LEADER_EPOCH_CHECKPOINT: read_epoch_checkpoint,
        PARTITION_METADATA: read_partition_metadata_file,
        META_PROPERTIES: read_meta_properties_file,
        CLEAN_SHUTDOWN_FILE: read_clean_shutdown_file,
    }
    parsed = parse_log_file_name(name)
    if parsed is None:
        return by_name.get(name)
    by_kind: dict[str, Callable[[str], Iterator[Row]]] = {
        LOG_SUFFIX: lambda at: read_log(at, options),
        OFFSET_INDEX_SUFFIX: read_offset_index,
        TIME_INDEX_SUFFIX: read_time_index,
        TRANSACTION_INDEX_SUFFIX: read_transaction_index,
        SNAPSHOT_SUFFIX: read_snapshot,
    }
    return by_kind[parsed.kind]
