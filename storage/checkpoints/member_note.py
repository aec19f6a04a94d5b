"""Note of a member: what the next process must know of this one's life in the cluster.

File `varve-member` in every log directory, JSON, one line:

    {"v":1,"boot":"<boot id>","epoch":<broker epoch>,"revision":<revision>,"failed":false,
     "brokers":[<node id>,...],"place":"<device>:<inode>",
     "writer":"<node id> <controller epoch>","write":<revision>}

    boot      the machine's boot id when this life began: while it is the same, the kernel has had
              all that was written, whatever became of the process
    epoch     of this life of the broker
    revision  the highest of the metadata store that was seen: a store behind it was restored
    failed    a disk has refused a write or a sync in this life: then the kernel may have lost some
    brokers   that were registered: whose directories a recovery of a lost store must have; missing
              in notes of earlier releases
    place     identity of the directory, see `Filesystem.identity`: in a copy of the directory the
              note names another one; empty in notes of earlier releases
    files     identities of this file and of the directory's lock file: where files were put back
              into the directory from a copy, they have others; empty in notes of earlier releases,
              or without generations. A disk gives an inode out again: without its generation a
              copy that is written over a later note may find the one that it names
    writer    the controller whose newest write was seen last, and the revision of that: a store
    write     without it was restored; empty and 0 in notes of earlier releases

A note that cannot be read counts as none.
"""

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from posixpath import join
from typing import Final

from storage.checkpoints.log_directory import LOCK_FILE
from storage.checkpoints.note_file import read_note
from storage.environment.filesystem import Filesystem
from storage.errors import DiskError

MEMBER_FILE: Final = "varve-member"
VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class MemberNote:
    """See the module. `boot` is empty where the system has no boot id."""

    boot: str
    epoch: int
    revision: int
    failed: bool = False
    brokers: tuple[int, ...] = ()
    place: str = ""
    writer: str = ""
    write: int = 0
    # Of each file, not of what is noted: who writes it knows.
    files: str = field(default="", compare=False)


def encode_member_note(note: MemberNote) -> bytes:
    """The file's bytes."""
    fields = {
        "v": VERSION,
        "boot": note.boot,
        "epoch": note.epoch,
        "revision": note.revision,
        "failed": note.failed,
        "brokers": list(note.brokers),
        "place": note.place,
        "writer": note.writer,
        "write": note.write,
        "files": note.files,
    }
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def decode_member_note(data: bytes) -> MemberNote | None:
    """The note; None: damaged, or of a later release."""
    try:
        fields = json.loads(data)
        if fields["v"] != VERSION:
            return None
        return MemberNote(
            str(fields["boot"]),
            int(fields["epoch"]),
            int(fields["revision"]),
            bool(fields["failed"]),
            tuple(map(int, fields.get("brokers", ()))),
            str(fields.get("place", "")),
            str(fields.get("writer", "")),
            int(fields.get("write", 0)),
            str(fields.get("files", "")),
        )
    except (KeyError, TypeError, ValueError):
        return None


def read_member_note(filesystem: Filesystem, directory: str) -> MemberNote | None:
    """The note in a log directory; None: there is none that can be read."""
    return read_note(filesystem, join(directory, MEMBER_FILE), "member note", decode_member_note)


def write_member_note(filesystem: Filesystem, directory: str, note: MemberNote) -> None:
    """Write it, with the identities of its files; on disk when this returns.

    Raises:
        DiskError: The disk refused; the note before stays.
    """
    path = join(directory, MEMBER_FILE)
    temporary = f"{path}.tmp"
    file = filesystem.open(temporary, create=True)
    try:
        # The file keeps its identity when it is renamed.
        data = encode_member_note(replace(note, files=_files(filesystem, directory, temporary)))
        file.truncate(0)
        file.write_at(data, 0)
        file.sync()
    except DiskError:
        # On a full disk it would take room for nothing.
        with suppress(DiskError):
            filesystem.unlink(temporary, missing_ok=True)
        raise
    finally:
        file.close()
    filesystem.rename(temporary, path)
    filesystem.sync_directory(directory)


def is_in_its_place(filesystem: Filesystem, directory: str, note: MemberNote) -> bool:
    """Whether a directory's note was written in it, and neither was copied since.

    Raises:
        DiskError: The disk refused.
    """
    if note.place not in ("", filesystem.identity(directory)):
        return False
    files = _files(filesystem, directory, join(directory, MEMBER_FILE))
    return note.files in ("", files, _without_generations(files))


def _files(filesystem: Filesystem, directory: str, note_path: str) -> str:
    lock = join(directory, LOCK_FILE)
    held = filesystem.identity(lock) if filesystem.exists(lock) else ""
    return f"{filesystem.identity(note_path)} {held}"


def _without_generations(files: str) -> str:
    return " ".join(":".join(identity.split(":")[:2]) for identity in files.split(" "))


def remove_member_note(filesystem: Filesystem, directory: str) -> None:
    """Remove it, if there is one: what it says is of a store that is not the directory's any more.

    Raises:
        DiskError: The disk refused.
    """
    filesystem.unlink(join(directory, MEMBER_FILE), missing_ok=True)


def member_notes(filesystem: Filesystem, directories: Iterable[str]) -> dict[str, MemberNote]:
    """The note in each directory that has one, by path."""
    notes = {directory: read_member_note(filesystem, directory) for directory in directories}
    return {path: note for path, note in notes.items() if note is not None}
