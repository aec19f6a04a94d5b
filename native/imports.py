"""Which modules of the project a module imports, also for types only, and what these import."""

import ast
from collections.abc import Iterable
from pathlib import Path

from native.modules import module_path


def imported_by(path: Path, root: Path) -> set[str]:
    """Modules and packages of ours that the source names, the packages around them included."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names.update(f"{node.module}.{each.name}" for each in node.names)
        elif isinstance(node, ast.Import):
            names.update(each.name for each in node.names)
    parents = {
        ".".join(parts[:end])
        for name in names
        if (parts := name.split("."))
        for end in range(1, len(parts))
    }
    return {
        name
        for name in names | parents
        if (root / name.partition(".")[0]).is_dir() and module_path(name, root)
    }


def closure(names: Iterable[str], root: Path) -> dict[str, Path]:
    """The modules, and all of ours that they import, directly or not; by name, in order."""
    found: dict[str, Path] = {}
    waiting = sorted(names)
    while waiting:
        name = waiting.pop()
        path = module_path(name, root)
        if name in found or path is None:
            continue
        found[name] = path
        waiting.extend(imported_by(path, root))
    return dict(sorted(found.items()))


__all__ = ["closure", "imported_by"]
