"""`varve transactions` on a fake cluster."""

from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from cli import transactions
from cli.admin.kafka_library import TopicPartition
from storage.environment.clock import SystemClock
from tests.fakes.kafka.library_clients import error_class
from tests.unit.cli.commands import Shell

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
HOUR_MS = 3_600_000
CONCURRENT_TRANSACTIONS, TRANSACTIONAL_ID_NOT_FOUND = 51, 105


class ProducerState(NamedTuple):
    """As the library has it."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    current_transaction_start_offset: int


class State(str):
    """The library's states are strings that have their name as a value, too."""

    __slots__ = ()

    @property
    def value(self) -> str:
        return str(self)


class FakeAdmin:
    """Transactions by their id, and producers by partition."""

    def __init__(self) -> None:
        self.transactions: dict[str, SimpleNamespace] = {}
        self.producers: dict[TopicPartition, list[ProducerState]] = {T0: [], T1: []}
        self.filters: dict[str, Any] = {}
        self.aborted: list[tuple[Any, ...]] = []
        self.fenced: list[str] = []
        self.still_ending = 0

    def add(
        self, name: str, producer_id: int, state: str = "Ongoing", *partitions: TopicPartition
    ) -> None:
        self.transactions[name] = SimpleNamespace(
            coordinator_id=1,
            state=State(state),
            producer_id=producer_id,
            producer_epoch=3,
            transaction_timeout_ms=60_000,
            transaction_start_time_ms=5,
            topic_partitions=set(partitions),
        )

    def open(self, where: TopicPartition, producer_id: int, *, age_ms: int = HOUR_MS) -> None:
        then = SystemClock().now_ms() - age_ms
        self.producers[where].append(ProducerState(producer_id, 3, 8, then, -1, 40))

    def list_transactions(self, **filters: Any) -> dict[int, list[SimpleNamespace]]:
        self.filters = {key: value for key, value in filters.items() if value is not None}
        wanted = filters.get("producer_id_filters")
        return {
            1: [
                SimpleNamespace(
                    transactional_id=name, producer_id=found.producer_id, state=found.state
                )
                for name, found in self.transactions.items()
                if not wanted or found.producer_id in wanted
            ]
        }

    def describe_transactions(self, names: list[str]) -> dict[str, SimpleNamespace]:
        for name in names:
            if name not in self.transactions:
                raise error_class(TRANSACTIONAL_ID_NOT_FOUND)(name)
        return {name: self.transactions[name] for name in names}

    def describe_producers(
        self, partitions: list[TopicPartition]
    ) -> dict[TopicPartition, SimpleNamespace]:
        return {
            where: SimpleNamespace(active_producers=self.producers[where]) for where in partitions
        }

    def describe_topics(self, topics: list[str] | None = None) -> list[dict[str, Any]]:
        found = [{"partition_index": where.partition} for where in self.producers]
        return [
            {"name": name, "error_code": 0 if name == "t" else 3, "partitions": found}
            for name in topics or ["t"]
        ]

    def abort_transaction(self, spec: tuple[Any, ...]) -> None:
        self.aborted.append(spec)

    def fence_producer(self, name: str) -> tuple[int, int]:
        if self.still_ending:
            self.still_ending -= 1
            raise error_class(CONCURRENT_TRANSACTIONS)
        self.fenced.append(name)
        return self.transactions[name].producer_id, 4

    def close(self) -> None:
        pass


@pytest.fixture
def admin() -> FakeAdmin:
    return FakeAdmin()


@pytest.fixture
def shell(
    admin: FakeAdmin, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Shell:
    monkeypatch.setattr(transactions, "time", SimpleNamespace(sleep=lambda _s: None))
    return Shell(transactions, lambda **_settings: admin, capsys)


def test_list(admin: FakeAdmin, shell: Shell) -> None:
    """By name; filters go to the brokers."""
    assert shell("list").out == "no transactions\n"
    admin.add("b", 7)
    admin.add("a", 8, "CompleteCommit")
    assert shell("list").cells[1:] == [
        ["a", "1", "8", "CompleteCommit"],
        ["b", "1", "7", "Ongoing"],
    ]
    words = ["--state", "ongoing", "--producer-id", "7", "--duration-ms", "5", "--pattern", "b.*"]
    assert [row["transactional_id"] for row in shell("list", *words, "--json").document] == ["b"]
    assert admin.filters == {
        "state_filters": ["Ongoing"],
        "producer_id_filters": [7],
        "duration_filter_ms": 5,
        "transactional_id_pattern": "b.*",
    }
    assert shell("list", "--state", "asleep").status == 2
    assert shell("list", "--pattern", "(").status == 2


def test_describe(admin: FakeAdmin, shell: Shell) -> None:
    """One by its id."""
    admin.add("tx", 7, "Ongoing", T1, T0)
    document = shell("describe", "tx", "--json").document
    assert document.pop("duration_ms") > 0
    assert document == {
        "transactional_id": "tx",
        "coordinator": 1,
        "producer_id": 7,
        "producer_epoch": 3,
        "state": "Ongoing",
        "timeout_ms": 60_000,
        "started_ms": 5,
        "partitions": ["t-0", "t-1"],
    }
    assert ["partitions", "t-0", "t-1"] in shell("describe", "tx").cells
    assert shell("describe", "nobody").status == 1


def test_describe_producers(admin: FakeAdmin, shell: Shell) -> None:
    """Where a transaction is open it says since when."""
    admin.producers[T0] = [ProducerState(9, 0, 1, 11, 2, -1), ProducerState(7, 3, 8, 12, -1, 40)]
    assert shell("describe-producers", "t:0").cells[1:] == [
        ["7", "3", "-1", "8", "12", "40"],
        ["9", "0", "2", "1", "11", "-"],
    ]
    assert shell("describe-producers", "t:1").out == "no producers\n"
    assert shell("describe-producers", "t").status == 2
    assert shell("describe-producers", "t:0,1").status == 2


def test_find_hanging(admin: FakeAdmin, shell: Shell) -> None:
    """Old, and not one that a coordinator will end there."""
    assert shell("find-hanging").out == "no hanging transactions\n"
    admin.open(T0, 7)
    admin.open(T1, 8, age_ms=19 * 60_000)
    found = shell("find-hanging", "--json").document
    assert [(row["topic"], row["partition"], row["producer_id"]) for row in found] == [("t", 0, 7)]
    assert (found[0]["start_offset"], found[0]["silent_ms"] >= HOUR_MS) == (40, True)
    words = ("--max-transaction-timeout", "10")
    assert len(shell("find-hanging", *words, "--json").document) == 2
    assert shell("find-hanging", "--topic", "t:1", "--json").document == []
    assert shell("find-hanging", "--topic", "other").status == 1


def test_abort_by_its_start(admin: FakeAdmin, shell: Shell) -> None:
    """The log knows the rest; without a marker of the producer it knows no coordinator."""
    admin.open(T0, 7)
    outcome = shell("abort", "t:0", "--start-offset", "40")
    assert outcome.out == "aborted the transaction of producer 7 in t-0\n"
    assert admin.aborted == [(T0, 7, 3, 0)]
    outcome = shell("abort", "t:0", "--start-offset", "41")
    assert outcome.status == 1
    assert "no transaction is open in t-0 since offset 41" in outcome.err


def test_abort_by_its_producer(admin: FakeAdmin, shell: Shell) -> None:
    """For brokers that cannot be asked."""
    words = ["--producer-id", "7", "--producer-epoch", "3", "--coordinator-epoch", "9"]
    document = shell("abort", "t:1", *words, "--json").document
    assert document["aborted"]["producer_id"] == 7
    assert admin.aborted == [(T1, 7, 3, 9)]
    assert shell("abort", "t:1", *words[:4]).status == 2
    assert shell("abort", "t:1", *words, "--start-offset", "40").status == 2
    assert shell("abort", "t:1").status == 2


def test_terminate(admin: FakeAdmin, shell: Shell) -> None:
    """Until the transaction is ended; a mistyped id does not become a new one."""
    admin.add("tx", 7)
    admin.still_ending = 3
    assert shell("terminate", "tx").out == "terminated tx: producer 7 is fenced below epoch 4\n"
    assert shell("terminate", "tx", "--json").document["epoch"] == 4
    assert shell("terminate", "tz").status == 1
    assert admin.fenced == ["tx", "tx"]
    admin.still_ending = 1_000
    outcome = shell("terminate", "tx")
    assert outcome.status == 1
    assert "still being ended" in outcome.err
