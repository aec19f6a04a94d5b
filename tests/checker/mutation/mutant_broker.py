"""The `varve` command with a seeded bug.

python -m tests.checker.mutation.mutant_broker NAME serve ...
"""

import os
import sys

from cli.main import main
from native.loader import VARIABLE
from tests.checker.mutation.mutants import MUTANTS

if __name__ == "__main__":
    # A function within compiled code cannot be replaced.
    os.environ[VARIABLE] = "off"
    MUTANTS[sys.argv[1]].apply()
    sys.exit(main(sys.argv[2:]))
