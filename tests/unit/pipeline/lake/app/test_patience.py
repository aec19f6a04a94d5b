"""What is tried again, how often, and what not."""

import threading
from uuid import UUID

import pytest
from typing_extensions import override

from pipeline.lake.app.patience import PAUSE_MAX_MS, PAUSE_MS, Patience, may_pass
from pipeline.lake.errors import ForeignTableError, TableUnavailableError, TaskFailedError
from pipeline.plan.errors import TopicError
from pipeline.plan.piece import PartitionName
from pipeline.read.broker.errors import (
    BrokerDeniedError,
    BrokerError,
    BrokerUnreachableError,
    OffsetsGoneError,
    TopicGoneError,
)
from pipeline.read.read_errors import DamagedDataError, LostOffsetsError
from tests.fakes.clock import ManualClock
from tiered.errors import StoreDeniedError, StoreTimeoutError, StoreUnavailableError

DAY_MS = 24 * 3_600_000


class Waits(threading.Event):
    """Time that passes at once."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__()
        self.clock = clock
        self.waited_ms: list[float] = []

    @override
    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.waited_ms.append(timeout * 1000)
        self.clock.advance(timeout * 1000)
        return self.is_set()


def made(retries: int, give_up_after_ms: float = 0) -> tuple[Patience, Waits]:
    clock = ManualClock()
    waits = Waits(clock)
    return Patience(clock, waits, retries=retries, give_up_after_ms=give_up_after_ms), waits


@pytest.mark.parametrize(
    "error",
    [
        TableUnavailableError("x"),
        TaskFailedError("x"),
        StoreUnavailableError("x"),
        StoreTimeoutError("x"),
        StoreDeniedError("x"),
        BrokerError("x"),
        BrokerUnreachableError("x"),
        BrokerDeniedError("x"),
        OffsetsGoneError("x"),
        LostOffsetsError(PartitionName("t", UUID(int=1), 0), 1, 2, "x"),
    ],
)
def test_what_is_outside_of_the_job_may_pass(error: Exception) -> None:
    assert may_pass(error)


@pytest.mark.parametrize(
    "error",
    [
        ForeignTableError("x"),
        TopicGoneError("x"),
        TopicError("x"),
        DamagedDataError("x", 0, "x"),
        ValueError("x"),
    ],
)
def test_what_stays_as_it_is_does_not(error: Exception) -> None:
    patience, waits = made(5, DAY_MS)
    assert not may_pass(error)
    with pytest.raises(type(error)):
        patience.failed(error)
    assert waits.waited_ms == []


def test_pauses_double_up_to_a_minute() -> None:
    patience, waits = made(12)
    for _ in range(12):
        patience.failed(TableUnavailableError("away"))
    assert waits.waited_ms[:3] == [PAUSE_MS, 2 * PAUSE_MS, 4 * PAUSE_MS]
    assert waits.waited_ms[-1] == PAUSE_MAX_MS
    with pytest.raises(TableUnavailableError):
        patience.failed(TableUnavailableError("away"))


def test_a_job_for_ever_outlives_a_night_and_is_bounded_all_the_same() -> None:
    patience, waits = made(5, DAY_MS)
    while sum(waits.waited_ms) < DAY_MS - PAUSE_MAX_MS:
        patience.failed(TableUnavailableError("away"))
    patience.failed(TableUnavailableError("away"))
    with pytest.raises(TableUnavailableError):
        patience.failed(TableUnavailableError("away"))
    assert DAY_MS <= sum(waits.waited_ms) <= DAY_MS + PAUSE_MAX_MS


def test_a_success_begins_anew() -> None:
    patience, waits = made(1)
    for _ in range(3):
        patience.failed(TableUnavailableError("away"))
        patience.succeeded()
    assert waits.waited_ms == [PAUSE_MS] * 3


def test_a_call_is_made_until_it_goes_well() -> None:
    patience, waits = made(5)
    left = [TableUnavailableError("away"), BrokerUnreachableError("away")]

    def attempt() -> str:
        if left:
            raise left.pop()
        return "done"

    assert patience.call(attempt) == "done"
    assert len(waits.waited_ms) == 2


def test_a_call_that_is_stopped_gives_nothing() -> None:
    patience, waits = made(5)

    def attempt() -> str:
        waits.set()
        raise TableUnavailableError("away")

    assert patience.call(attempt) is None
