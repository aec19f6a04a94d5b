"""`python -m native`: compile what has changed, and say what was done.

--if-possible    a missing compiler is a sentence, not a failure; what was done before is none
--c              only the sources in C
--modules        only the modules of Python
"""

import os
import sys
import time

from native.build import NO_COMPILER, BuildError, build_all
from native.build_modules import NO_HEADERS, NO_MYPYC, build_modules

LACKING = (NO_COMPILER, NO_HEADERS, NO_MYPYC)


def main(arguments: list[str]) -> int:
    """Compile; 0 if all is built."""
    only_if_possible = "--if-possible" in arguments
    done: list[str] = []
    known: list[str] = []
    try:
        if "--modules" not in arguments:
            for path, is_new in build_all(os.environ):
                (done if is_new else known).append(path.name)
        if "--c" not in arguments:
            begin = time.monotonic()
            folder, is_new, is_compiled = build_modules(os.environ)
            seconds = f"in {time.monotonic() - begin:.0f} s"
            how = seconds if is_compiled else f"{seconds}, without the compiler: the C is the same"
            (done if is_new else known).append(f"{folder.name} {how}" if is_new else folder.name)
    except (BuildError, OSError) as error:
        print(f"native: {error}", file=sys.stderr)  # noqa: T201  a command's output
        return 0 if str(error) in LACKING and only_if_possible else 1
    finally:
        for name in done:
            print(f"compiled {name}")  # noqa: T201  a command's output
        if not only_if_possible:
            for name in known:
                print(f"{name} is up to date")  # noqa: T201  a command's output
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
