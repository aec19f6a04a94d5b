"""`python -m native.try_modules FOLDER`: import every module of a build, to see that they load."""

import importlib
import sys
from pathlib import Path

from native.loader import load_build
from native.modules import COMPILED, IN_C, ROOT


def main(arguments: list[str]) -> int:
    """0 if all are there and compiled; else an exception says what is not."""
    found = load_build(Path(arguments[0]), ROOT)
    if not found.modules:
        raise ImportError(found.reason)
    for name in (*COMPILED, *IN_C):
        file = importlib.import_module(name).__file__ or ""
        if not file.endswith(".so"):
            raise ImportError(f"{name} is {file}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
