"""The `varve` command with a seeded bug.

python -m tests.checker.mutation.mutant_broker NAME serve ...
"""

import sys

from cli.main import main
from tests.checker.mutation.mutants import MUTANTS

if __name__ == "__main__":
    MUTANTS[sys.argv[1]].apply()
    sys.exit(main(sys.argv[2:]))
