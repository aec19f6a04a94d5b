"""Note of the metadata store of a node that is alone: how far it had come.

File `varve-store` in every log directory, JSON, one line, written after each change of the store:

    {"v":1,"store":"<id of the store>","revision":<revision>}

A store that is behind it is an older copy, or has lost what its `-wal` file had. A note that cannot
be read counts as none.
"""

import json
from dataclasses import dataclass
from posixpath import join
from typing import Final
from uuid import UUID

from storage.checkpoints.note_file import read_note
from storage.environment.filesystem import Filesystem
from storage.types.uuid_text import format_uuid, parse_uuid

STORE_FILE: Final = "varve-store"
VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class StoreNote:
    """See the module."""

    store_id: UUID
    revision: int


def encode_store_note(note: StoreNote) -> bytes:
    """The file's bytes."""
    fields = {"v": VERSION, "store": format_uuid(note.store_id), "revision": note.revision}
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def decode_store_note(data: bytes) -> StoreNote | None:
    """The note; None: damaged, or of a later release."""
    try:
        fields = json.loads(data)
        if fields["v"] != VERSION:
            return None
        return StoreNote(parse_uuid(str(fields["store"])), int(fields["revision"]))
    except (KeyError, TypeError, ValueError):
        return None


def read_store_note(filesystem: Filesystem, directory: str) -> StoreNote | None:
    """The note in a log directory; None: there is none that can be read."""
    return read_note(
        filesystem, join(directory, STORE_FILE), "note of the metadata store", decode_store_note
    )


def write_store_note(filesystem: Filesystem, directory: str, note: StoreNote) -> None:
    """Write it; on disk when this returns.

    Raises:
        DiskError: The disk refused.
    """
    filesystem.replace_bytes(join(directory, STORE_FILE), encode_store_note(note))


def remove_store_note(filesystem: Filesystem, directory: str) -> None:
    """Remove it, if there is one: another store takes the place of the one that it is of.

    Raises:
        DiskError: The disk refused.
    """
    filesystem.unlink(join(directory, STORE_FILE), missing_ok=True)
