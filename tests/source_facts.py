"""What tests of the source ask of a module, each read and parsed once in a process.

Three of them ask the same of some thousands of files: to parse these is most of what they do.
"""

import ast
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from native.imports import import_statements, names_in

ROOT: Final = Path(__file__).resolve().parent.parent

ONLY_IMPORTS: Final = frozenset({"bench", "docker", "docs", "tests"})
"""Top-level folders of whose modules only the imports are known: two thirds of all files."""

DECISIONS: Final = (ast.If, ast.For, ast.While, ast.Try, ast.With, ast.Match, ast.comprehension)

LOG_CALLS: Final = {"debug", "info", "warning", "error", "exception", "critical", "log"}
TEXT_ARGUMENTS: Final = {"description", "epilog", "help", "text"}

Text = tuple[int, str]
"""A line, and what is said there."""


class Imports(NamedTuple):
    """What a module imports, also for types only.

    Attributes:
        members: Modules and names in `from a import b`.
        whole: Modules in `import a`.
        names: Dotted names of modules, of what is in them and of the packages around them.
    """

    members: frozenset[tuple[str, str]]
    whole: tuple[str, ...]
    names: frozenset[str]


class Facts(NamedTuple):
    """What else is asked of a module.

    The trees themselves, of all files, would be half a gigabyte until the run ends, and each call
    of the collector in a later test would walk through them.

    Attributes:
        imports: What it imports.
        called: Names and their attributes in calls `a.b()`.
        attributes: Names of all attributes.
        has_behaviour: Whether there is more than declarations: some function decides, repeats or
            handles.
        operator_texts: Literal texts of errors, log lines, alerts and of the help of settings.
        first_lines: Of docstrings.
    """

    imports: Imports
    called: frozenset[tuple[str, str]] = frozenset()
    attributes: frozenset[str] = frozenset()
    has_behaviour: bool = False
    operator_texts: tuple[Text, ...] = ()
    first_lines: tuple[Text, ...] = ()


@cache
def facts(path: Path) -> Facts:
    """Of a module of the project; of those in `ONLY_IMPORTS` nothing but its imports."""
    with _no_collection():
        tree = ast.parse(path.read_bytes())
        imports = _imports(tree)
        if path.relative_to(ROOT).parts[0] in ONLY_IMPORTS:
            return Facts(imports)
        return _all_facts(tree, imports)


@contextmanager
def _no_collection() -> Iterator[None]:
    """A tree has no circles: what the collector would look through is freed without it."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _imports(tree: ast.Module) -> Imports:
    statements = list(import_statements(tree))
    return Imports(
        frozenset(
            (node.module, name.name)
            for node in statements
            if isinstance(node, ast.ImportFrom) and node.module
            for name in node.names
        ),
        tuple(
            name.name for node in statements if isinstance(node, ast.Import) for name in node.names
        ),
        frozenset(names_in(statements)),
    )


def _all_facts(tree: ast.Module, imports: Imports) -> Facts:
    called: set[tuple[str, str]] = set()
    attributes: set[str] = set()
    operator_texts: list[Text] = []
    first_lines: list[Text] = []
    outside, inside = _nodes(tree)
    for node in (*outside, *inside):
        match node:
            case ast.Attribute():
                attributes.add(node.attr)
            case ast.Call():
                function = node.func
                if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
                    called.add((function.value.id, function.attr))
                operator_texts += _texts(_said_by_call(node))
            case ast.Raise(exc=ast.Call() as error):
                operator_texts += _texts(_literals(error.args))
            case ast.Module() | ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                if text := ast.get_docstring(node):
                    first_lines.append((node.body[0].lineno, text.splitlines()[0]))
    return Facts(
        imports,
        frozenset(called),
        frozenset(attributes),
        any(isinstance(node, DECISIONS) for node in inside),
        tuple(operator_texts),
        tuple(first_lines),
    )


def _nodes(tree: ast.Module) -> tuple[list[ast.AST], list[ast.AST]]:
    """All nodes but those without any below them: outside of functions, and in them.

    `ast.walk` takes three times as long.
    """
    outside: list[ast.AST] = [tree]
    inside: list[ast.AST] = []
    for waiting in (outside, inside):
        for node in waiting:
            is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            found = inside if is_function else waiting
            for value in map(node.__dict__.get, node._fields):
                if value.__class__ is list:
                    found += [each for each in value if each.__class__ in _WITH_OTHERS]
                elif value.__class__ in _WITH_OTHERS:
                    found.append(value)
    return outside, inside


_WITH_OTHERS: Final = frozenset(
    kind
    for kind in vars(ast).values()
    if isinstance(kind, type)
    and issubclass(kind, ast.AST)
    and kind not in (ast.Name, ast.Constant)
    and kind._fields
)
"""Kinds of nodes that may have others below them; a name has what it is used for."""


def _said_by_call(call: ast.Call) -> list[ast.expr]:
    """What of its arguments is for operators to read."""
    found = [each.value for each in call.keywords if each.arg in TEXT_ARGUMENTS]
    function = call.func
    if isinstance(function, ast.Attribute) and (
        function.attr in LOG_CALLS
        or (function.attr == "set" and "alerts" in ast.unparse(function.value))
    ):
        found += _literals(call.args)
    return found


def _literals(arguments: list[ast.expr]) -> list[ast.expr]:
    return [each for each in arguments if isinstance(each, ast.Constant | ast.JoinedStr)]


def _texts(expressions: list[ast.expr]) -> Iterator[Text]:
    """Literal parts of strings, of f-strings, of choices between strings."""
    for expression in expressions:
        for part in ast.walk(expression):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                yield expression.lineno, part.value


__all__ = ["Facts", "Imports", "facts"]
