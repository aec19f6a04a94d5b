"""ListTransactions: every served version, every filter."""

from typing import Any

import pytest

from broker.handlers import list_transactions
from protocol.error_codes import ErrorCode
from protocol.messages.list_transactions import ListTransactionsRequest
from tests.fakes.broker.wire import versions_of
from tests.harness.transactions import A
from tests.unit.broker.handlers.transactions_fixture import Transactions

VERSIONS = versions_of(list_transactions)


def ask(t: Transactions, version: int = 2, **filters: Any) -> Any:
    return t.send(list_transactions, ListTransactionsRequest(**filters), version)


def names(answer: Any) -> list[str]:
    assert answer.error_code == 0
    return sorted(state.transactional_id for state in answer.transaction_states)


@pytest.fixture
def three(transactions: Transactions) -> Transactions:
    """`empty-1`, `open-2` with a transaction of ten seconds, `done-3`, which began just then."""
    transactions.init(transactional_id="empty-1")
    for name in ("open-2", "done-3"):
        _, producer = transactions.init(transactional_id=name)
        transactions.add(producer, A, transactional_id=name)
        if name == "done-3":
            transactions.end(producer, transactional_id=name)
        transactions.clock.advance(5_000)
    return transactions


@pytest.mark.parametrize("version", VERSIONS)
def test_all(three: Transactions, version: int) -> None:
    answer = ask(three, version)
    assert sorted(
        (state.transactional_id, state.producer_id, state.transaction_state)
        for state in answer.transaction_states
    ) == [
        ("done-3", 1002, "CompleteCommit"),
        ("empty-1", 1000, "Empty"),
        ("open-2", 1001, "Ongoing"),
    ]
    assert answer.unknown_state_filters == []


@pytest.mark.parametrize("version", VERSIONS)
def test_states_and_producer_ids(three: Transactions, version: int) -> None:
    assert names(ask(three, version, state_filters=["Ongoing", "Empty"])) == ["empty-1", "open-2"]
    assert names(ask(three, version, producer_id_filters=[1000, 1002, 7])) == ["done-3", "empty-1"]
    both = ask(three, version, state_filters=["Empty"], producer_id_filters=[1001])
    assert names(both) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_unknown_states_are_named_and_match_nothing(three: Transactions, version: int) -> None:
    answer = ask(three, version, state_filters=["Bogus"])
    assert (names(answer), answer.unknown_state_filters) == ([], ["Bogus"])
    answer = ask(three, version, state_filters=["Bogus", "Empty", "Bogus"])
    assert (names(answer), answer.unknown_state_filters) == (["empty-1"], ["Bogus"])


def test_durations(three: Transactions) -> None:
    """One that has no transaction passes, as in Kafka: its start is -1."""
    assert names(ask(three, 1, duration_filter=5_000)) == ["empty-1", "open-2"]
    assert names(ask(three, 1, duration_filter=4_999)) == ["done-3", "empty-1", "open-2"]
    assert len(names(ask(three, 1, duration_filter=0))) == 3
    assert len(names(ask(three, 1, duration_filter=-1))) == 3


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        (None, ["done-3", "empty-1", "open-2"]),
        ("", ["done-3", "empty-1", "open-2"]),
        (".*-[12]", ["empty-1", "open-2"]),
        ("open", []),
        ("open.*|done-3", ["done-3", "open-2"]),
        ("[a-z]+-\\d", ["done-3", "empty-1", "open-2"]),
    ],
)
def test_patterns_match_whole_names(
    three: Transactions, pattern: str | None, found: list[str]
) -> None:
    assert names(ask(three, transactional_id_pattern=pattern)) == found


@pytest.mark.parametrize("pattern", ["(", "[", "*a", "a{99999}"])
def test_what_is_not_a_pattern_is_refused(three: Transactions, pattern: str) -> None:
    answer = ask(three, transactional_id_pattern=pattern)
    assert answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert answer.transaction_states == []


def test_pattern_that_is_meant_to_take_for_ever(transactions: Transactions) -> None:
    transactions.init(transactional_id="a" * 5_000)
    answer = ask(transactions, transactional_id_pattern="(a*)*(a*)*(a*)*b")
    assert answer.error_code in (0, ErrorCode.INVALID_REGULAR_EXPRESSION)


def test_names_outside_ascii(transactions: Transactions) -> None:
    transactions.init(transactional_id="zahlung-ä-1")
    assert names(ask(transactions, transactional_id_pattern="zahlung-.-1")) == ["zahlung-ä-1"]
    assert names(ask(transactions, transactional_id_pattern="zahlung-[a-z]-1")) == []


def test_nothing_is_listed_while_some_would_be_missing(transactions: Transactions) -> None:
    transactions.new_producer()
    transactions.log.committed[0] -= 1

    async def elect() -> None:
        transactions.transactions.on_resigned(0)
        transactions.transactions.on_elected(0, 3)

    transactions.run(elect())
    assert ask(transactions).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    transactions.run(transactions.transactions.stop())
    assert ask(transactions).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_nothing_is_listed_while_another_broker_may_coordinate_some(three: Transactions) -> None:
    """As other requests get NOT_COORDINATOR then."""
    three.log.has_followers = True
    three.log.valid_until_ms = three.clock.monotonic_ms() - 1
    answer = ask(three)
    assert (answer.error_code, answer.transaction_states) == (
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        [],
    )
