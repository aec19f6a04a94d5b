"""Which code the tests run, decided before any of it is imported: Python's, unless asked for.

`tests.tiers` asks: where there is a fresh build (`make native`) what reaches compiled modules runs
on both paths.
"""

import os
from pathlib import Path
from typing import Final

import pytest

from native.loader import VARIABLE, CodePath, prefer_compiled
from native.modules import COMPILED, ROOT
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


def modules_on_both() -> list[Path]:
    """Test modules that are to pass compiled and as Python, from `ROOT` on, in order.

    Those that import a compiled module, other than `EQUIPMENT`, or ask which code runs, and all in
    the folder that mirrors the folder of a compiled module.
    """
    found = (path.relative_to(ROOT) for path in sorted((ROOT / "tests").rglob("test_*.py")))
    return [path for path in found if path.parent in MIRRORS or _names_compiled(ROOT / path)]


def _names_compiled(path: Path) -> bool:
    return not facts(path).imports.names.isdisjoint({*COMPILED, __name__} - EQUIPMENT)


__all__ = ["CODE", "EQUIPMENT", "MIRRORS", "modules_on_both", "python_only"]
