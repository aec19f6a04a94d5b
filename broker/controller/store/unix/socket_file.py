"""The file of a Unix socket: bound so that its owner alone can connect, and reached by any path.

A path longer than the kernel takes (107 bytes on Linux) is reached through a descriptor of its
folder, by way of /proc.
"""

import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from broker.controller.store.metadata_store import StoreDeniedError, StoreUnavailableError

PATH_BYTES_MAX: Final = 100
"""Longer ones take the way round; the kernels take 103 to 107."""

_PROC: Final = "/proc/self/fd"


def listen(path: str) -> socket.socket:
    """A listening socket at `path`, mode 0600, in place of one that an ended process has left.

    The caller has made sure that no other process listens there. Its folder is made with mode 0700
    where there is none.

    Raises:
        StoreDeniedError: Other users may enter the folder, or what lies at `path` is no socket.
        StoreUnavailableError: The system refuses.
    """
    folder = os.path.dirname(path) or "."
    try:
        make_private_folder(folder)
        if os.path.lexists(path):
            if not stat.S_ISSOCK(os.lstat(path).st_mode):
                raise StoreDeniedError(f"{path} is there, and is no socket: it is left as it is")
            os.unlink(path)
        bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with reachable(path) as name:
                bound.bind(name)
            os.chmod(path, 0o600)
            bound.setblocking(False)
        except BaseException:
            bound.close()
            raise
    except OSError as error:
        raise StoreUnavailableError(f"{path} cannot be listened on: {error.strerror}") from error
    return bound


def make_private_folder(folder: str) -> None:
    """Make a folder with mode 0700, and those above it; only its owner may enter one that is there.

    Raises:
        StoreDeniedError: It does.
        OSError: The system refuses.
    """
    try:
        os.makedirs(folder, 0o700)
    except FileExistsError:
        mode = stat.S_IMODE(os.stat(folder).st_mode)
        if mode & 0o077:
            raise StoreDeniedError(
                f"folder {folder} of the metadata store has mode {mode:04o}, so that other users "
                f"may enter it: chmod 700 {folder}"
            ) from None


def remove(path: str) -> None:
    """Remove the socket's file, if it is there."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return


@contextmanager
def reachable(path: str) -> Iterator[str]:
    """A path to the same file that is short enough for the kernel.

    Raises:
        StoreDeniedError: There is none on this system.
        OSError: The folder cannot be opened.
    """
    if len(os.fsencode(path)) <= PATH_BYTES_MAX:
        yield path
        return
    if not os.path.isdir(_PROC):
        raise StoreDeniedError(
            f"the socket's path has {len(os.fsencode(path))} bytes, {PATH_BYTES_MAX} can be used "
            f"on this system: {path}"
        )
    folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"{_PROC}/{folder}/{os.path.basename(path)}"
    finally:
        os.close(folder)
