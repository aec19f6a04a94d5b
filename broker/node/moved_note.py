"""Note in a log directory that the metadata store which was in it is a cluster's now.

    varve-metadata.sqlite            the store of a node that is alone
    varve-metadata.sqlite.copied     the same, once `varve metadata copy` has copied it
    varve-metadata.moved             where to: {"v":1,"to":"etcd://host:2379","prefix":"/varve/"}

The note is written before the store is renamed; it counts only while there is no store.
"""

import json
from dataclasses import dataclass
from posixpath import join
from typing import Final

from config.broker import BROKER_KEYS
from storage.environment.filesystem import Filesystem

MOVED_FILE: Final = "varve-metadata.moved"
COPIED_SUFFIX: Final = ".copied"
VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class MovedNote:
    """Where the contents are: `metadata.store` and `metadata.store.prefix` of the cluster."""

    to: str
    prefix: str

    def refusal(self, directory: str) -> str:
        """What a start of the node alone is refused with."""
        option = "" if self._is_usual else f" --prefix {self.prefix}"
        return (
            f"the metadata store of {directory} was copied to {self.to} (prefix {self.prefix}): "
            f"this node is a broker of that cluster, start it with {self.settings}. To "
            f"go back: `varve metadata copy --from {self.to} --to sqlite:{directory}{option}`"
        )

    @property
    def settings(self) -> str:
        """What the node is started with from then on."""
        store = f"metadata.store={self.to}"
        return store if self._is_usual else f"{store} and metadata.store.prefix={self.prefix}"

    @property
    def _is_usual(self) -> bool:
        return self.prefix == BROKER_KEYS["metadata.store.prefix"].default


def read_moved_note(filesystem: Filesystem, directory: str) -> MovedNote | None:
    """The note in a directory; None: there is none. One that does not parse names no place.

    Raises:
        DiskError: It cannot be read.
    """
    path = join(directory, MOVED_FILE)
    if not filesystem.exists(path):
        return None
    try:
        fields = json.loads(filesystem.read_bytes(path))
        return MovedNote(str(fields["to"]), str(fields["prefix"]))
    except (KeyError, TypeError, ValueError):
        return MovedNote("a cluster's store", "unknown")


def write_moved_note(filesystem: Filesystem, directory: str, note: MovedNote) -> None:
    """Write it; on disk when this returns.

    Raises:
        DiskError: The disk refused.
    """
    fields = {"v": VERSION, "to": note.to, "prefix": note.prefix}
    data = json.dumps(fields, separators=(",", ":")).encode() + b"\n"
    filesystem.replace_bytes(join(directory, MOVED_FILE), data)
