"""A project of a few lines with our `native` package, so that compiling takes seconds."""

import shutil
import subprocess
import sys
from pathlib import Path

from native.modules import ROOT

SHAPES = '''"""Compiled."""

from typing import Final

from area.limits import SIDES_MAX


class Shape:
    """Has sides."""

    def __init__(self, sides: int) -> None:
        self.sides: Final = sides

    def is_small(self) -> bool:
        """Has few of them."""
        return self.sides <= SIDES_MAX
'''

LIMITS = '''"""Not compiled, but its constant is copied into what is."""

from typing import Final

SIDES_MAX: Final = 4
'''

DRAW = '''"""Compiled."""

from area.shapes import Shape


def draw(sides: int) -> str:
    """A word for it."""
    return "small" if Shape(sides).is_small() else "large"
'''

KIND = '''"""There in C, too."""


def kind() -> str:
    """What it is written in."""
    return "python"
'''

KIND_IN_C = """
#include <Python.h>

static PyObject *kind(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(none))
{
    return PyUnicode_FromString("c");
}

static PyMethodDef functions[] = {{"kind", kind, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {.m_name = "area.kind", .m_size = -1, .m_methods = functions};

PyMODINIT_FUNC PyInit_kind(void)
{
    return PyModule_Create(&module);
}
"""

COMPILED = ("area.draw", "area.shapes")
IN_C = {"area.kind": "native/kind.c"}

SAY = """
from native.loader import prefer_compiled
path = prefer_compiled()
import area.draw, area.kind, area.shapes
print(path.describe())
print(area.draw.draw(5), *(module.__file__.endswith(".so") for module in (area.draw, area.shapes)))
print(area.kind.kind())
"""


def make(root: Path) -> None:
    """Write the project."""
    shutil.copytree(ROOT / "native", root / "native", ignore=shutil.ignore_patterns("built"))
    (root / "pyproject.toml").write_text("[tool.mypy]\nstrict = true\n")
    # What the compiler makes of it is not looked at: half of a build's time.
    build = root / "native" / "mypyc_run.py"
    build.write_text(build.read_text().replace('OPTIMIZATION = "2"', 'OPTIMIZATION = "0"'))
    area = root / "area"
    area.mkdir()
    for name, text in {
        "__init__": '"""Shapes."""\n',
        "shapes": SHAPES,
        "limits": LIMITS,
        "draw": DRAW,
        "kind": KIND,
    }.items():
        (area / f"{name}.py").write_text(text)
    (root / "native" / "kind.c").write_text(KIND_IN_C)
    listed = root / "native" / "modules.py"
    before, _, rest = listed.read_text().partition("COMPILED: Final = (")
    text = f"{before}COMPILED: Final = {COMPILED!r}{rest.partition(chr(10) + ')')[2]}"
    before, start, rest = text.partition("IN_C: Final[Mapping[str, str]] = ")
    listed.write_text(f"{before}{start}{IN_C!r}{rest.partition('}')[2]}")


def run(root: Path, *words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run Python there, with nothing of the tests' environment but where programs are."""
    return subprocess.run(
        [sys.executable, *words],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(root), **environment},
    )


def say(root: Path, **environment: str) -> list[str]:
    """Three lines: which code runs, what it says and is, and of the module that is in C."""
    done = run(root, "-c", SAY, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
