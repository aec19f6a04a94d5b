"""Counts of the code's shape: `python -m bench.structure [--at COMMIT]`.

    modules per folder      `__init__.py` left out; generated messages apart
    cycles                  folders of a package that import each other, roots of packages left out
    parameters              constructors with more than eight, `self` left out
    lines                   by package and of tests
    largest modules
    tests                   modules per folder, test functions
    time by tier            of the last run of each on this machine, see `tests.tiers`

Read from Git, so any commit can be counted and compared with another; times are not.
"""

import argparse
import ast
import json
import re
import statistics
import subprocess
from collections import Counter
from pathlib import Path, PurePosixPath

PACKAGES = ("config", "native", "protocol", "storage", "tiered", "broker", "pipeline", "cli")
GENERATED = "protocol/messages"
MANY_PARAMETERS = 8
TIMES = Path(__file__).parent.parent / ".build" / "tests" / "times.json"
TEST = re.compile(r"^ *(?:async )?def test_", re.MULTILINE)


def sources(commit: str) -> dict[str, str]:
    """Text of every Python file of a commit, by path."""
    listed = subprocess.run(
        ["git", "ls-tree", "-r", "--name-only", commit], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    paths = [path for path in listed if path.endswith(".py")]
    asked = "".join(f"{commit}:{path}\n" for path in paths)
    answer = subprocess.run(
        ["git", "cat-file", "--batch"], check=True, capture_output=True, input=asked.encode()
    ).stdout
    found, at = {}, 0
    for path in paths:
        end = answer.index(b"\n", at)
        size = int(answer[at:end].split()[-1])
        found[path] = answer[end + 1 : end + 1 + size].decode()
        at = end + 1 + size + 1
    return found


def print_folders(what: str, modules: set[str]) -> None:
    """How many modules there are, and in which folders most of them."""
    sizes = Counter(map(folder_of, modules))
    median = statistics.median(sizes.values())
    print(f"{what}: folders {len(sizes)}, modules {len(modules)}, median {median}")
    for folder, size in sizes.most_common(8):
        print(f"  {size:4} {folder}")


def print_times() -> None:
    """How long each tier of tests took when it last ran here."""
    if not TIMES.exists():
        return
    print("time by tier, last run here")
    for name, seconds in json.loads(TIMES.read_text()).items():
        print(f"  {seconds // 60:4}:{seconds % 60:02} {name}")


def folder_of(path: str) -> str:
    """The folder of a module."""
    return str(PurePosixPath(path).parent)


def imports(path: str, tree: ast.Module, modules: set[str]) -> set[str]:
    """Paths of our modules that one imports when it runs; imports for type checkers left out."""
    skipped = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    names = set()
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{one.name}" for one in node.names)}
        elif isinstance(node, ast.Import):
            names |= {one.name for one in node.names}
    return {p for name in names if (p := name.replace(".", "/") + ".py") in modules and p != path}


def cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Groups of folders each of which reaches all the others."""
    reached = {}
    for start in graph:
        seen: set[str] = set()
        stack = [start]
        while stack:
            for following in graph.get(stack.pop(), ()):
                if following not in seen:
                    seen.add(following)
                    stack.append(following)
        reached[start] = seen
    groups = {
        frozenset(other for other in reached[one] if one in reached[other])
        for one in graph
        if one in reached[one]
    }
    return sorted(sorted(group) for group in groups)


def count(commit: str) -> None:
    """Print the counts of a commit."""
    texts = sources(commit)
    ours = {p: t for p, t in texts.items() if p.split("/")[0] in PACKAGES}
    written = {p: t for p, t in ours.items() if not p.startswith(GENERATED)}
    modules = {p for p in written if not p.endswith("__init__.py")}
    trees = {p: ast.parse(written[p]) for p in modules}

    print_folders("source", modules)

    graph: dict[str, set[str]] = {}
    for path, tree in trees.items():
        inside = {p for p in imports(path, tree, modules) if p.split("/")[0] == path.split("/")[0]}
        here = folder_of(path)
        # A package's root puts its folders together, and holds what all of them share.
        graph.setdefault(here, set()).update(
            there
            for there in map(folder_of, inside)
            if there != here and "/" in here and "/" in there
        )
    found = cycles(graph)
    print(f"cycles between folders: {len(found)}, {sum(map(len, found))} folders in them")
    for group in found:
        print("      " + " ".join(group))

    many = [
        (number, path, cls.name)
        for path, tree in trees.items()
        for cls in ast.walk(tree)
        if isinstance(cls, ast.ClassDef)
        for one in cls.body
        if isinstance(one, ast.FunctionDef) and one.name == "__init__"
        if (number := len(one.args.args) + len(one.args.kwonlyargs) - 1) > MANY_PARAMETERS
    ]
    print(f"constructors with more than {MANY_PARAMETERS} parameters: {len(many)}")
    for number, path, name in sorted(many, reverse=True)[:8]:
        print(f"  {number:4} {name} ({path})")

    lines = Counter({p: t.count("\n") for p, t in texts.items()})
    by_package: Counter[str] = Counter()
    for path, number in lines.items():
        top = GENERATED if path.startswith(GENERATED) else path.split("/")[0]
        by_package[top] += number
    print("lines")
    for name, number in by_package.most_common():
        print(f"  {number:7,} {name}")
    print("largest modules")
    for path, number in Counter({p: lines[p] for p in modules}).most_common(8):
        print(f"  {number:5,} {path}")
    of_tests = {p for p in texts if p.startswith("tests/") and not p.endswith("__init__.py")}
    print_folders("tests", of_tests)
    functions = sum(len(TEST.findall(texts[path])) for path in of_tests)
    print(f"test functions: {functions:,}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--at", default="HEAD", help="which commit")
    count(parser.parse_args().at)
    print_times()
