"""Whole runs: real clients, faults, judgement; and whether the checker would notice a mistake."""

from pathlib import Path

import pytest

from tests.checker import delayed
from tests.checker.faults.nemesis import FAULTS
from tests.checker.mutation.mutants import MUTANTS
from tests.checker.mutation.score import try_mutant
from tests.checker.run import RunOptions, run
from tests.checker.workloads import BRIEF, EVERYBODY, PLAIN, SHARING
from tests.harness.etcd import etcd_or_skip

pytestmark = pytest.mark.interop

EVERYTHING = ("kill", "pause", "cut", "operate", "clients", "freeze")


def test_fifteen_seconds_of_kills_and_pauses(tmp_path: Path) -> None:
    """The short variant: nothing lost, doubled, torn or read too early."""
    faults = ("kill", "pause", "clients")
    options = RunOptions(seconds=15, seed=20, faults=faults, workload=BRIEF)
    outcome = run(options, tmp_path)
    assert outcome.is_clean, outcome.text()
    assert outcome.report.outcomes["txn ok"] > 50, outcome.text()
    assert outcome.report.outcomes["acknowledge ok"] > 10, outcome.text()
    assert outcome.faults["kill"] >= 1


def test_twenty_seconds_of_three_brokers(tmp_path: Path) -> None:
    """Brokers, store and network fail; replicas, store and clients' histories are judged."""
    etcd_or_skip()
    options = RunOptions(
        seconds=20, seed=3, brokers=3, faults=EVERYTHING, workload=BRIEF, rate_per_s=15
    )
    outcome = run(options, tmp_path)
    assert outcome.is_clean, outcome.text()
    assert outcome.report.outcomes["txn ok"] > 20, outcome.text()
    assert sum(outcome.faults.values()) >= 3, outcome.text()


@pytest.mark.slow
@pytest.mark.parametrize("brokers", [3, 4])
def test_five_minutes_of_several_brokers(tmp_path: Path, brokers: int) -> None:
    """All clients, all faults; with four brokers a topic's replicas are on some of them."""
    etcd_or_skip()
    options = RunOptions(
        seconds=300, seed=303, brokers=brokers, faults=EVERYTHING, workload=EVERYBODY, rate_per_s=10
    )
    outcome = run(options, tmp_path)
    assert outcome.is_clean, outcome.text()


@pytest.mark.slow
def test_five_minutes_of_everybody_and_everything(tmp_path: Path) -> None:
    """All clients, Java's and share groups among them, all faults."""
    outcome = run(RunOptions(seconds=300, seed=300, faults=FAULTS, workload=EVERYBODY), tmp_path)
    assert outcome.is_clean, outcome.text()


@pytest.mark.slow
def test_three_minutes_of_a_share_group(tmp_path: Path) -> None:
    """Kills of broker and members, and members that wake up after their time."""
    faults = ("kill", "pause", "clients", "freeze")
    outcome = run(RunOptions(seconds=180, seed=183, faults=faults, workload=SHARING), tmp_path)
    assert outcome.is_clean, outcome.text()


@pytest.mark.slow
def test_ten_minutes_of_kills_and_pauses(tmp_path: Path) -> None:
    """The full variant."""
    faults = ("kill", "pause", "clients", "freeze")
    outcome = run(RunOptions(seconds=600, seed=600, faults=faults), tmp_path)
    assert outcome.is_clean, outcome.text()
    assert outcome.report.outcomes["txn ok"] > 2000, outcome.text()
    assert outcome.faults["kill"] >= 10
    assert outcome.faults["pause"] >= 10


@pytest.mark.slow
def test_three_minutes_of_a_bad_network(tmp_path: Path) -> None:
    """The proxy delays, cuts, throttles and loses answers, besides kills."""
    outcome = run(RunOptions(seconds=180, seed=180, faults=("kill", "proxy")), tmp_path)
    assert outcome.is_clean, outcome.text()
    assert outcome.faults["proxy"] >= 5


@pytest.mark.slow
def test_two_minutes_of_a_bad_network_without_transactions(tmp_path: Path) -> None:
    """Groups of both protocols, one in which they meet, and an idempotent producer."""
    options = RunOptions(seconds=120, seed=121, faults=("kill", "freeze", "proxy"), workload=PLAIN)
    outcome = run(options, tmp_path)
    assert outcome.is_clean, outcome.text()


def test_late_requests_with_version_2(tmp_path: Path) -> None:
    """The short variant: a request of one transaction never touches the next."""
    outcome = delayed.run(delayed.Options(transactions=600, seed=6), tmp_path)
    assert outcome.report.forbidden == {}, outcome.text()
    assert outcome.proxy["delay"] > 20
    assert outcome.report.outcomes["txn ok"] > 100


@pytest.mark.slow
def test_late_requests_of_fifty_thousand_transactions(tmp_path: Path) -> None:
    """The full variant."""
    options = delayed.Options(transactions=50_000, producers=32, seed=50)
    outcome = delayed.run(options, tmp_path)
    assert outcome.report.forbidden == {}, outcome.text()


@pytest.mark.slow
@pytest.mark.parametrize("broker", ["varve", "kafka"])
def test_late_requests_with_version_1_show_what_it_cannot_do(tmp_path: Path, broker: str) -> None:
    """Two transactions of one epoch cannot be told apart, by any broker: the run is alive."""
    options = delayed.Options(
        transactions=3000, version=1, broker=broker, seed=1, verification=False
    )
    outcome = delayed.run(options, tmp_path)
    assert {"G1a", "lost-write", "torn"} & outcome.report.forbidden.keys(), outcome.text()


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_seeded_bug_is_caught(tmp_path: Path, name: str) -> None:
    """`python -m tests.checker.mutation.score` tells more."""
    verdict = try_mutant(name, MUTANTS[name], 25.0, 1, tmp_path)
    assert verdict.caught
