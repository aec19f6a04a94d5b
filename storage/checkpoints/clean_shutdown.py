"""Clean-shutdown marker: everything in this log directory reached the disk, nothing to recover.

File `.kafka_cleanshutdown`, JSON:

    {"version":0,"brokerEpoch":-1}

The file's being there is what counts; the epoch is for the controller. It is taken away as soon as
it has been read at a start, so that a crash during the start does not count as clean (KAFKA-10471).

Source: Kafka, CleanShutdownFileHandler.java.
"""

import json
from posixpath import join
from typing import Final

from storage.environment.filesystem import Filesystem

CLEAN_SHUTDOWN_FILE: Final = ".kafka_cleanshutdown"


def write_clean_shutdown(filesystem: Filesystem, directory: str, broker_epoch: int = -1) -> None:
    """Mark a log directory as cleanly shut down; on disk when this returns."""
    content = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
    filesystem.replace_bytes(join(directory, CLEAN_SHUTDOWN_FILE), content.encode())


def take_clean_shutdown(filesystem: Filesystem, directory: str) -> bool:
    """Whether the directory was cleanly shut down. Durably removes the marker.

    Raises:
        DiskError: The marker is there and cannot be removed.
    """
    path = join(directory, CLEAN_SHUTDOWN_FILE)
    if not filesystem.exists(path):
        return False
    filesystem.unlink(path)
    # Else the marker could come back after a power cut and hide that this run ended with one.
    filesystem.sync_directory(directory)
    return True


def marked_epoch(filesystem: Filesystem, directory: str) -> int | None:
    """The broker epoch in a directory's marker, which stays; None: there is none, or no epoch.

    Raises:
        DiskError: The marker cannot be read.
    """
    path = join(directory, CLEAN_SHUTDOWN_FILE)
    if not filesystem.exists(path):
        return None
    return read_broker_epoch(filesystem.read_bytes(path))


def read_broker_epoch(data: bytes) -> int | None:
    """The broker epoch in a marker; None when it does not say."""
    try:
        content = json.loads(data)
    except ValueError:
        return None
    epoch = content.get("brokerEpoch") if isinstance(content, dict) else None
    return epoch if isinstance(epoch, int) else None
