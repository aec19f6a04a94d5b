"""Whether the seeded bugs still fit the broker; whether they are caught is in `test_run`."""

import subprocess
import sys

from bench.node import REPOSITORY
from tests.checker.worker import KINDS
from tests.checker.workloads import BRIEF, EVERYBODY, JOBS, MEMBERS, PLAIN, SHARING, WRITERS

APPLY = """
from tests.checker.mutation.mutants import MUTANTS
for name, mutant in MUTANTS.items():
    mutant.apply()
    assert mutant.summary, name
"""


def test_every_seeded_bug_finds_what_it_replaces() -> None:
    """In a process of their own, one over the other."""
    subprocess.run([sys.executable, "-c", APPLY], check=True, timeout=60, cwd=REPOSITORY)


def test_workloads_name_clients_that_there_are() -> None:
    for workload in (EVERYBODY, SHARING, PLAIN, BRIEF, WRITERS, MEMBERS, JOBS):
        assert set(workload) <= KINDS.keys()
    assert KINDS.keys() - {"jsharelast", "history"} == set(EVERYBODY)
