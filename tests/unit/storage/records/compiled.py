"""The walks in C, whatever `VARVE_NATIVE` says: built if there is a compiler."""

import contextlib
import os

from native.build import BuildError, build
from native.library import load_library
from storage.records.compiled_walks import CompiledWalks

with contextlib.suppress(BuildError, OSError):
    # Where it cannot be compiled there is nothing to compare.
    build("record_rules", os.environ)

_LIBRARY = load_library("record_rules")

COMPILED = CompiledWalks(_LIBRARY.handle) if _LIBRARY.handle is not None else None
