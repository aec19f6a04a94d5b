"""Which code the tests run, decided before any of it is imported: Python's, unless asked for.

`tests.tiers` asks: where there is a fresh build (`make native`) what reaches compiled modules runs
on both paths.
"""

import os
from pathlib import Path
from typing import Final

import pytest

from native.loader import VARIABLE, CodePath, prefer_compiled
from native.modules import COMPILED, IN_C, ROOT
from tests.source_facts import facts

# Also for the processes that tests start.
os.environ.setdefault(VARIABLE, "off")

CODE: Final[CodePath] = prefer_compiled()
"""Of this process."""

python_only: Final = pytest.mark.skipif(
    CODE.modules > 0, reason="replaces what compiled code calls directly: runs as Python"
)
"""For a test that replaces a function of a listed module, or inherits from a class of one."""

MIRRORS: Final = frozenset(
    Path("tests/unit", *name.split(".")[:-1]) for name in COMPILED if name.count(".")
)
"""Folders of the tests of compiled modules."""

EQUIPMENT: Final = frozenset(
    {
        "storage.environment.clock",
        "storage.environment.local_filesystem",
        "storage.types.append_origin",
        "storage.types.topic_partition",
    }
)
"""Compiled modules that a test of anything makes its objects with: a clock, a disk, names.

To import one is no sign that the test reaches the hot path; their own tests are in `MIRRORS`.
"""


def modules_on_both(*, of_each_change: bool = False) -> list[Path]:
    """Test modules that are to pass compiled and as Python, from `ROOT` on, in order.

    Before a merge: those that import a compiled module, other than `EQUIPMENT`, or ask which code
    runs, and all in the folder that mirrors the folder of a compiled module.

    Args:
        of_each_change: Of those in `tests/unit` only the ones whose subject is compiled: in such a
            folder those that import a compiled module or have its name. And all that ask which
            code runs.
    """
    found = (path.relative_to(ROOT) for path in sorted((ROOT / "tests").rglob("test_*.py")))
    is_among = _has_compiled_subject if of_each_change else _reaches_compiled
    return [path for path in found if is_among(path)]


def _reaches_compiled(path: Path) -> bool:
    return path.parent in MIRRORS or _imports(path, {*COMPILED, __name__} - EQUIPMENT)


def _has_compiled_subject(path: Path) -> bool:
    if path.parts[1] != "unit":
        return _reaches_compiled(path)
    if path.parent not in MIRRORS:
        return _imports(path, {__name__})
    folder = ".".join(path.parts[2:-1])
    subject = f"{folder}.{path.stem.removeprefix('test_')}"
    has_its_name = any(subject == name or subject.startswith(f"{name}_") for name in COMPILED)
    return has_its_name or _imports(path, {*COMPILED, *IN_C, __name__} - EQUIPMENT)


def _imports(path: Path, names: set[str]) -> bool:
    return not facts(ROOT / path).imports.names.isdisjoint(names)


__all__ = ["CODE", "EQUIPMENT", "MIRRORS", "modules_on_both", "python_only"]
