"""Which modules of tests a run has, and the share that each of its processes takes.

To collect 16,000 tests takes a process longer than to run a tenth of them; so each process of the
fast tier is given modules of its own, and collects no others. It is not asked for more when it has
done them, so the shares should take equally long.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

SLOWER_FOLDERS: Final = {"system": "system", "checker": "system", "interop": "interop"}
"""Which slower tier the tests of a folder belong to; those of all others are fast."""

COSTLY: Final[dict[str, float]] = {}
"""Seconds of a core that modules take; those that take less than two are counted by their size."""

SECONDS_OF_BYTE: Final = 0.4 / 10_000

_NEVER_FAST: Final = re.compile(rb"^pytestmark = .*\b(slow|spark|clients)\b", re.MULTILINE)

_SLOWER: Final = re.compile(rb"^pytestmark = .*\b(interop|system)\b", re.MULTILINE)


def fast_modules(tests: Path) -> list[Path]:
    """Modules below `tests` that have tests of the fast tier, in order.

    A few have none, since it is tests that are marked: these are collected, and left out by pytest.
    """
    return [path for path in sorted(tests.rglob("test_*.py")) if _may_be_fast(path, tests)]


def _may_be_fast(path: Path, tests: Path) -> bool:
    text = path.read_bytes()
    if _NEVER_FAST.search(text):
        return False
    is_slower = path.relative_to(tests).parts[0] in SLOWER_FOLDERS or _SLOWER.search(text)
    return not is_slower or b"quick" in text


def cost(path: Path, tests: Path) -> float:
    """Seconds of a core, about."""
    known = COSTLY.get(path.relative_to(tests).as_posix())
    return path.stat().st_size * SECONDS_OF_BYTE if known is None else known


def shares(modules: Sequence[Path], costs: Iterable[float], count: int) -> list[list[Path]]:
    """Divide modules into `count` shares that cost about the same, none of them empty if possible.

    Neighbours stay together: they import the same.
    """
    by_module = list(zip(modules, costs, strict=True))
    total = sum(each for _, each in by_module)
    found: list[list[Path]] = [[] for _ in range(count)]
    before = 0.0
    for module, each in by_module:
        middle = before + each / 2
        found[min(int(middle * count / total), count - 1)].append(module)
        before += each
    return [share for share in found if share]
