"""`python -m tests.checker.mutant_broker NAME serve ...`: the `varve` command with a seeded bug."""

import sys

from cli.main import main
from tests.checker.mutants import MUTANTS

if __name__ == "__main__":
    MUTANTS[sys.argv[1]].apply()
    sys.exit(main(sys.argv[2:]))
