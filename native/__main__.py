"""`python -m native`: compile what has changed, and say what was done.

`--if-possible` makes a missing compiler a sentence instead of a failure.
"""

import os
import sys

from native.build import NO_COMPILER, BuildError, build_all


def main(arguments: list[str]) -> int:
    """Compile; 0 if all is built."""
    only_if_possible = "--if-possible" in arguments
    try:
        for path, is_new in build_all(os.environ):
            if is_new:
                print(f"compiled {path.name}")  # noqa: T201  a command's output
            elif not only_if_possible:
                print(f"{path.name} is up to date")  # noqa: T201  a command's output
    except (BuildError, OSError) as error:
        print(f"native: {error}", file=sys.stderr)  # noqa: T201  a command's output
        return 0 if str(error) == NO_COMPILER and only_if_possible else 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
