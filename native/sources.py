"""The C sources, and the shared object of each."""

import hashlib
import sysconfig
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).resolve().parent

NAMES: Final = ("records", "record_rules")

FLAGS: Final = (
    "-std=c11",
    "-O3",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
    "-Wall",
    "-Wextra",
)
"""No flag of this machine's processor: what is built here may run on another one."""


def built_folder() -> Path:
    """Where shared objects are; Git ignores it."""
    return FOLDER / "built"


def source_path(name: str) -> Path:
    """Where the source is."""
    return FOLDER / f"{name}.c"


def library_path(name: str) -> Path:
    """Where the shared object of the source as it is now belongs.

    Raises:
        OSError: The source cannot be read, as within a zip.
    """
    digest = hashlib.sha256(" ".join(FLAGS).encode())
    digest.update(source_path(name).read_bytes())
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return built_folder() / f"{name}-{platform}-{digest.hexdigest()[:16]}.so"


__all__ = ["FLAGS", "NAMES", "built_folder", "library_path", "source_path"]
