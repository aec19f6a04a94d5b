"""What makes a cell of the grid good; the cells themselves are played by `make grid`."""

from collections import Counter

import pytest

from tests.checker.anomalies.analysis import Report
from tests.checker.anomalies.anomaly import Anomaly
from tests.checker.cluster.faults import CLUSTER_FAULTS
from tests.checker.cluster.grid import COUNTED, FAULTS, ROLLING, WORKLOADS, Cell, judge, table
from tests.checker.cluster.nemesis import GROUPS, expand
from tests.checker.faults.progress import Progress
from tests.checker.run import RunOutcome
from tests.checker.worker import KINDS


def outcome(report: Report | None = None, undrained: tuple[str, ...] = (), **ok: int) -> RunOutcome:
    """A run with so many successes of each kind."""
    progress = Progress(20.0, 20.0, Counter(ok), 1.5, 1.5)
    return RunOutcome(report or Report(), Counter(), list(undrained), [], [], progress, [])


def test_there_are_sixty_cells_at_least_of_faults_and_clients_that_exist() -> None:
    assert len(FAULTS) * len(WORKLOADS) >= 60
    assert {row.fault for name, row in FAULTS.items() if name != ROLLING} <= set(CLUSTER_FAULTS)
    assert {kind for kinds in WORKLOADS.values() for kind in kinds} <= set(KINDS)
    assert COUNTED.keys() == WORKLOADS.keys()


def test_a_hundred_successes_are_asked_for_while_a_majority_lives() -> None:
    """Of the clients that the column is about."""
    assert judge("kill leader", "read", outcome(send=500, read=99)).problem == "99 successes"
    assert judge("kill leader", "txn", outcome(txn=60, rawtxn=40)).problem == ""
    assert judge("kill two", "send", outcome()).problem == ""


def test_findings_make_a_cell_bad() -> None:
    report = Report()
    report.add([Anomaly("lost-write", "gone")])
    assert judge("kill two", "send", outcome(report)).problem == "lost-write 1"
    assert judge("50 ms", "send", outcome(undrained=("late",), send=200)).problem == "late"


def test_the_table_shows_what_was_played_and_what_failed() -> None:
    cells = {
        ("50 ms", "send"): Cell("50 ms", "send", 300, 20.0, 1.0),
        ("50 ms", "txn"): Cell("50 ms", "txn", 7, 20.0, 1.0, "7 successes"),
    }
    (row,) = [line for line in table(cells).splitlines() if line.startswith("| 50 ms")]
    assert row == "| 50 ms | 300 | - | 7! | - | - | - | - |"


def test_short_names_stand_for_faults() -> None:
    assert set(expand(tuple(GROUPS))) <= set(CLUSTER_FAULTS)
    assert expand(("cut-pair", "clients", "cut-pair")) == ("cut-pair", "clients")
    with pytest.raises(ValueError, match="earthquake"):
        expand(("earthquake",))
