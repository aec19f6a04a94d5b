"""Which code runs: Python's own, or what is compiled of it. Decided once, before it is imported.

`VARVE_NATIVE` says what is wanted:

    auto      compiled where there is a fresh build, else Python; the default
    off       Python
    require   compiled, and an error where that cannot be

All or nothing: compiled classes know each other's layout, so a process has all modules of a
build, or none. None if one of them is imported already, if any source is not as it was when it was
compiled, or if the build does not load.
"""

import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Final, NamedTuple

from native import stamp as stamps

VARIABLE: Final = "VARVE_NATIVE"
WAYS: Final = ("auto", "off", "require")


class CodePath(NamedTuple):
    """Which code runs.

    Attributes:
        modules: How many modules are compiled; 0: Python's own run.
        reason: Why none is, a sentence without its full stop; else empty.
        remedy: What to do about it; empty if there is nothing to be done.
    """

    modules: int
    reason: str = ""
    remedy: str = ""

    @property
    def name(self) -> str:
        """One word: `compiled` or `python`."""
        return "compiled" if self.modules else "python"

    def describe(self) -> str:
        """One line for an operator."""
        if self.modules:
            return f"compiled ({self.modules} modules)"
        return f"python ({self.reason}{'; ' if self.remedy else ''}{self.remedy})"


class CompiledCodeError(Exception):
    """Compiled code is required and cannot be loaded, or the variable is none of the ways."""


class CompiledFinder:
    """Finds the modules of one build, in its folder; knows nothing else."""

    def __init__(self, folder: Path, modules: Mapping[str, str]) -> None:
        self._files = {name: str(folder / path) for name, path in modules.items()}

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        """Where the module is; None: it is not compiled."""
        file = self._files.get(fullname)
        if file is None:
            return None
        loader = importlib.machinery.ExtensionFileLoader(fullname, file)
        return importlib.util.spec_from_file_location(fullname, file, loader=loader)


NOT_ASKED: Final = CodePath(0, "nothing has asked for compiled code")
REMEDY: Final = "`make native` compiles"

_current = NOT_ASKED


def code_path() -> CodePath:
    """Which code runs in this process."""
    return _current


def prefer_compiled(environment: Mapping[str, str] = os.environ) -> CodePath:
    """Let the compiled modules be imported from now on, if there is a fresh build.

    Called first thing by every program of ours. Called again, it changes nothing.

    Raises:
        CompiledCodeError: `VARVE_NATIVE` is none of the three, or `require` and there is none.
    """
    global _current
    if _current is not NOT_ASKED:
        return _current
    way = environment.get(VARIABLE) or WAYS[0]
    if way not in WAYS:
        raise CompiledCodeError(f"{VARIABLE}={way} is none of {', '.join(WAYS)}")
    if way == "off":
        _current = CodePath(0, f"{VARIABLE}=off")
        return _current
    from native.sources import FOLDER, built_folder

    found = install(built_folder(), FOLDER.parent)
    if way == "require" and not found.modules:
        raise CompiledCodeError(f"{VARIABLE}=require, but the code is {found.describe()}")
    _current = found
    return found


def install(built: Path, root: Path) -> CodePath:
    """Install the finder for the fresh build in `built` of the sources below `root`.

    Returns:
        What runs from now on.
    """
    nothing = CodePath(0, "nothing is compiled", REMEDY)
    last, others = nothing, 0
    for folder in stamps.build_folders(built):
        if not stamps.is_for_this_python(folder):
            others += 1
            continue
        held = stamps.hold(folder)
        if held is None:
            continue
        found = load_build(folder, root)
        if found.modules:
            return found
        last = found
        os.close(held)
    if others and last is nothing:
        return CodePath(0, f"what is compiled is for another Python than {stamps.ABI}", REMEDY)
    return last


def load_build(folder: Path, root: Path) -> CodePath:
    """Load the build in `folder`, if it is of the sources below `root`."""
    stamp = stamps.read_stamp((folder / stamps.STAMP).read_bytes())
    if stamp is None:
        return CodePath(0, f"{folder.name} has no stamp of this version", REMEDY)
    changed = stamps.first_change(stamp, root, folder)
    if changed:
        return CodePath(0, f"{changed} is not as it was compiled", REMEDY)
    for name in stamp.modules:
        if name in sys.modules:
            return CodePath(0, f"{name} was imported before")
    library = str(folder / f"{stamps.LIBRARY}.{stamps.ABI}.so")
    loader = importlib.machinery.ExtensionFileLoader(stamps.LIBRARY, library)
    spec = importlib.util.spec_from_file_location(stamps.LIBRARY, library, loader=loader)
    assert spec is not None
    try:
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
    except ImportError as error:
        return CodePath(0, f"{folder.name} does not load: {error}", REMEDY)
    sys.modules[stamps.LIBRARY] = module
    sys.meta_path.insert(0, CompiledFinder(folder, stamp.modules))
    return CodePath(len(stamp.modules))


__all__ = [
    "VARIABLE",
    "CodePath",
    "CompiledCodeError",
    "CompiledFinder",
    "code_path",
    "install",
    "load_build",
    "prefer_compiled",
]
