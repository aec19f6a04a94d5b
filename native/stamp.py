"""The stamp of a build of modules: what it was made from, and whether that is still so.

    native/built/modules-<abi>-<digest>/stamp.json          this, written last
                                       /varve__mypyc.<abi>.so   all modules, one shared library
                                       /broker/network/....so   one for each, which fetches it there

The stamp lists the compiled modules' sources and those of every module that they import, directly
or not: types of all of these decide what mypyc writes, and constants of theirs are copied into it.
A file whose size and time are those of the stamp is taken for unchanged, as Python does with its
bytecode; otherwise its contents decide, so an installed copy is as good as the tree it was
built in.

A process that uses a build keeps a shared lock on its stamp, and one without is removed with the
next build.
"""

import fcntl
import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any, Final, NamedTuple

STAMP: Final = "stamp.json"
FORMAT: Final = 1
"""Changes with the layout of the stamp; another one's build is not loaded."""

PREFIX: Final = "modules-"
LIBRARY: Final = "varve__mypyc"
"""Module name of the shared library."""

ABI: Final = EXTENSION_SUFFIXES[0].strip(".").removesuffix(".so")
"""Python, processor and system that a build is for, as `cpython-311-x86_64-linux-gnu`."""


class Source(NamedTuple):
    """A file as it was when it was compiled."""

    size: int
    mtime_ns: int
    sha256: str


class Stamp(NamedTuple):
    """What a build was made from.

    Attributes:
        tools: Versions and flags of mypyc and the compiler; another make builds it again, but it is
            not wrong.
        code: SHA-256 of the C that mypyc wrote. Sources that lead to the same C need no compiler.
        sources: By path below the folder of the packages.
        objects: Size of each shared object, by path below the build's folder.
        modules: The shared object of each module.
    """

    tools: str
    code: str
    sources: dict[str, Source]
    objects: dict[str, int]
    modules: dict[str, str]


def look_at(path: Path | str) -> Source:
    """A file as it is now.

    Raises:
        OSError: It cannot be read.
    """
    with open(path, "rb") as file:
        found = os.fstat(file.fileno())
        return Source(found.st_size, found.st_mtime_ns, hashlib.sha256(file.read()).hexdigest())


def write_stamp(folder: Path, stamp: Stamp) -> None:
    """Write it into the folder of a build."""
    content = {"format": FORMAT, **stamp._asdict()}
    (folder / STAMP).write_text(json.dumps(content, separators=(",", ":")), encoding="utf-8")


def read_stamp(text: bytes) -> Stamp | None:
    """The stamp within a file; None if it is of another format, or damaged."""
    try:
        content: dict[str, Any] = json.loads(text)
        if content.pop("format") != FORMAT:
            return None
        content["sources"] = {path: Source(*each) for path, each in content["sources"].items()}
        return Stamp(**content)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def first_change(stamp: Stamp, root: Path, folder: Path) -> str:
    """What is not as it was when it was compiled: a path, or empty."""
    base = f"{root}{os.sep}"
    for path, source in stamp.sources.items():
        try:
            found = os.stat(base + path)
            if (found.st_size, found.st_mtime_ns) == source[:2]:
                continue
            if found.st_size != source.size or look_at(base + path).sha256 != source.sha256:
                return path
        except OSError:
            return path
    return first_changed_object(stamp, folder)


def first_changed_object(stamp: Stamp, folder: Path) -> str:
    """The path of a shared object that is missing or has another size, or empty."""
    for path, size in stamp.objects.items():
        try:
            if os.stat(folder / path).st_size != size:
                return path
        except OSError:
            return path
    return ""


def build_folders(built: Path) -> Iterator[Path]:
    """Folders of finished builds, for this Python and others, in order."""
    for path in sorted(built.glob(f"{PREFIX}*")):
        if (path / STAMP).is_file():
            yield path


def is_for_this_python(folder: Path) -> bool:
    """Whether this interpreter can load it."""
    return folder.name.startswith(f"{PREFIX}{ABI}-")


def hold(folder: Path) -> int | None:
    """A descriptor that keeps the build from being removed while it is open; None: it is gone."""
    try:
        descriptor = os.open(folder / STAMP, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), os.stat(folder / STAMP)):
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None


def digest_of(words: Iterable[str]) -> str:
    """Sixteen digits that stand for the words."""
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:16]


__all__ = [
    "ABI",
    "LIBRARY",
    "PREFIX",
    "STAMP",
    "Source",
    "Stamp",
    "build_folders",
    "digest_of",
    "first_change",
    "first_changed_object",
    "hold",
    "is_for_this_python",
    "look_at",
    "read_stamp",
    "write_stamp",
]
