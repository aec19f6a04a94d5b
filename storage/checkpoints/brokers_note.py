"""Note of a log directory that several brokers share: their node ids.

File `varve-brokers.json` in every directory of `log.dirs`, one line, written before they start:

    {"v":1,"node.ids":[1,2]}

Broker 2 has its data in the folder `broker-2` beside it. A note that cannot be read is an error: it
says what else must be there.
"""

import json
from collections.abc import Sequence
from posixpath import join
from typing import Final

from storage.environment.filesystem import Filesystem
from storage.errors import CorruptFileError

BROKERS_FILE: Final = "varve-brokers.json"
VERSION: Final = 1


def broker_folder(node_id: int) -> str:
    """Name of the folder with a broker's data."""
    return f"broker-{node_id}"


def encode_brokers_note(node_ids: Sequence[int]) -> bytes:
    """The file's bytes."""
    fields = {"v": VERSION, "node.ids": sorted(node_ids)}
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def read_brokers_note(filesystem: Filesystem, directory: str) -> tuple[int, ...] | None:
    """Node ids, ascending; None: there is no note.

    Raises:
        CorruptFileError: It is not one of this release.
        DiskError: It cannot be read.
    """
    path = join(directory, BROKERS_FILE)
    if not filesystem.exists(path):
        return None
    try:
        fields = json.loads(filesystem.read_bytes(path))
        version, node_ids = fields["v"], fields["node.ids"]
        if version != VERSION or not node_ids:
            raise ValueError(f"version {version}, node ids {node_ids}")
        if not all(type(one) is int and one >= 0 for one in node_ids):
            raise ValueError(f"node ids {node_ids}")
        return tuple(sorted(set(node_ids)))
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptFileError(f"{path} does not parse: {error}") from error


def write_brokers_note(filesystem: Filesystem, directory: str, node_ids: Sequence[int]) -> None:
    """Write it; on disk when this returns.

    Raises:
        DiskError: The disk refused.
    """
    filesystem.replace_bytes(join(directory, BROKERS_FILE), encode_brokers_note(node_ids))
