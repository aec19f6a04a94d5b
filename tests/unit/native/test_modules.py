"""The list of compiled modules."""

import ast
import re

from native.imports import import_statements, statements
from native.modules import COMPILED, ROOT, module_path


def test_the_list_is_of_modules_in_order() -> None:
    """Each there, none twice, no package."""
    assert list(COMPILED) == sorted(set(COMPILED))
    for name in COMPILED:
        path = module_path(name, ROOT)
        assert path is not None, name
        assert path.name != "__init__.py"
    assert module_path("broker.no_such_module", ROOT) is None


PACKAGES = ("broker", "cli", "pipeline", "protocol", "storage", "tiered")


def bases_of(tree: ast.Module) -> dict[str, tuple[list[str], bool]]:
    """Classes of a module: the names of their bases, and whether Python may inherit from them."""
    return {
        node.name: (
            [ast.unparse(base).partition("[")[0] for base in node.bases],
            any("allow_interpreted_subclasses=True" in ast.unparse(d) for d in node.decorator_list),
        )
        for node in statements(tree)
        if isinstance(node, ast.ClassDef)
    }


def source_of(name: str) -> bytes:
    """The text of a module."""
    path = module_path(name, ROOT)
    assert path is not None
    return path.read_bytes()


def test_no_listed_class_is_called_when_the_interpreter_has_ended() -> None:
    """`__del__` of a compiled class; the process would end with SIGSEGV instead of its status."""
    for name in COMPILED:
        assert b"def __del__" not in source_of(name), name


def test_classes_of_python_inherit_from_compiled_ones_where_these_allow_it() -> None:
    """Otherwise no object of such a class can be made: a request that needs one would fail."""
    compiled = {name: bases_of(ast.parse(source_of(name))) for name in COMPILED}
    imports = re.compile(b"^ *from (%b) import" % b"|".join(map(str.encode, COMPILED)), re.M)
    seen = []
    for path in sorted(each for package in PACKAGES for each in (ROOT / package).rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        source = path.read_bytes()
        # Most have no class, or import none of these: not worth a tree.
        if name in COMPILED or b"class " not in source or not imports.search(source):
            continue
        tree = ast.parse(source)
        imported = {
            each.asname or each.name: (node.module, each.name)
            for node in import_statements(tree)
            if isinstance(node, ast.ImportFrom) and node.module in compiled
            for each in node.names
        }
        for cls, (bases, _) in bases_of(tree).items():
            for base in bases:
                if base in imported:
                    module, class_name = imported[base]
                    assert compiled[module][class_name][1], f"{name}.{cls} inherits from {base}"
                    seen.append(cls)
    assert "DelayedRemoteFetch" in seen
