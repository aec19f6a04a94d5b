"""Which modules of the project a module imports, also for types only, and what these import."""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from native.modules import module_path

_BLOCKS: Final = ("body", "orelse", "finalbody", "handlers", "cases")
"""Where a statement has others."""


def statements(tree: ast.Module) -> Iterator[ast.AST]:
    """All statements of a module, also those in functions; what a tree has most of is expressions.

    `ast.walk` takes ten times as long.
    """
    waiting: list[ast.AST] = [tree]
    for node in waiting:
        yield node
        for block in _BLOCKS:
            # A lambda's and a conditional expression's are expressions, and no lists.
            if isinstance(inner := getattr(node, block, None), list):
                waiting += inner


def import_statements(tree: ast.Module) -> Iterator[ast.Import | ast.ImportFrom]:
    """All of them, also those in functions and those for types only."""
    return (node for node in statements(tree) if isinstance(node, ast.Import | ast.ImportFrom))


def names_in(imports: Iterable[ast.Import | ast.ImportFrom]) -> set[str]:
    """Dotted names of modules, of what is imported from them, and of the packages around them."""
    names: set[str] = set()
    for node in imports:
        if isinstance(node, ast.Import):
            names.update(each.name for each in node.names)
        elif node.module:
            names.add(node.module)
            names.update(f"{node.module}.{each.name}" for each in node.names)
    parents = {
        ".".join(parts[:end])
        for name in names
        if (parts := name.split("."))
        for end in range(1, len(parts))
    }
    return names | parents


def imported_by(path: Path, root: Path) -> set[str]:
    """Modules and packages of ours that the source names, the packages around them included."""
    return {
        name
        for name in names_in(import_statements(ast.parse(path.read_bytes())))
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


__all__ = ["closure", "import_statements", "imported_by", "names_in", "statements"]
