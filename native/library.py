"""Find and load a compiled part: the one that belongs to the source, or none."""

import ctypes
import os
from collections.abc import Mapping
from typing import Final, NamedTuple

from native.loader import VARIABLE
from native.sources import library_path

RECORD_RULES: Final = "record_rules"
"""Walks over the records of a batch: validation, recompression, compaction."""


class Library(NamedTuple):
    """A compiled part, or why there is none.

    Attributes:
        handle: What ctypes loaded; None: Python does the work.
        problem: A sentence where there is none, else empty.
    """

    handle: ctypes.CDLL | None
    problem: str

    @property
    def path(self) -> str:
        """One word: `compiled` or `python`."""
        return "python" if self.handle is None else "compiled"

    def describe(self) -> str:
        """One line for an operator."""
        return f"{self.path} ({self.problem})" if self.problem else self.path


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
        return Library(None, f"{name} is not compiled from this source; `make native` does it")
    try:
        return Library(ctypes.CDLL(str(path)), "")
    except OSError as error:
        return Library(None, f"{path.name} does not load: {error}")


def load_wanted(name: str, environment: Mapping[str, str] = os.environ) -> Library:
    """Load it as `load_library` does, but where `VARVE_NATIVE` is `off`."""
    if environment.get(VARIABLE) == "off":
        return Library(None, f"{VARIABLE}=off")
    return load_library(name)


__all__ = ["RECORD_RULES", "Library", "load_library", "load_wanted"]
