"""Small notes in log directories that count as none where they cannot be read."""

import logging
from collections.abc import Callable
from typing import TypeVar

from storage.environment.filesystem import Filesystem
from storage.errors import DiskError

_log = logging.getLogger(__name__)

_T = TypeVar("_T")


def read_note(
    filesystem: Filesystem, path: str, what: str, decode: Callable[[bytes], _T | None]
) -> _T | None:
    """The note in a file; None: there is none that can be read, which is logged.

    Args:
        filesystem: Where it is.
        path: Of the file.
        what: Its name in the log.
        decode: Its bytes; None: they are damaged, or of a later release.
    """
    try:
        if not filesystem.exists(path):
            return None
        note = decode(filesystem.read_bytes(path))
    except DiskError as error:
        _log.warning("%s cannot be read file=%s error=%s", what, path, error)
        return None
    if note is None:
        _log.warning("%s does not parse file=%s", what, path)
    return note
