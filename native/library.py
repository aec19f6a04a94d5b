"""Find and load a compiled part: the one that belongs to the source, or none."""

import ctypes
from typing import NamedTuple

from native.sources import library_path


class Library(NamedTuple):
    """A compiled part, or why there is none.

    Attributes:
        handle: What ctypes loaded; None: Python does the work.
        problem: A sentence where there is none, else empty.
    """

    handle: ctypes.CDLL | None
    problem: str


def load_library(name: str) -> Library:
    """Load the shared object of the source as it is now.

    Never fails: what is missing, of another source or for another machine is a reason to go on
    without it.
    """
    try:
        path = library_path(name)
    except OSError:
        return Library(None, f"the source of {name} is not beside the package, as within a zip")
    if not path.exists():
        return Library(None, f"{name} is not compiled as its source is now; `make native` does it")
    try:
        return Library(ctypes.CDLL(str(path)), "")
    except OSError as error:
        return Library(None, f"{path.name} does not load: {error}")


__all__ = ["Library", "load_library"]
