"""A slot is answered once, or abandoned once."""

import pytest

from broker.network.connection_info import ConnectionInfo
from broker.network.response import ResponseMemory, ResponseSlot, bytes_of
from storage.types.file_slice import FileSlice


class Connection:
    info = ConnectionInfo("PLAINTEXT", "127.0.0.1")

    def __init__(self) -> None:
        self.parked = 0
        self.answered_slots: list[ResponseSlot] = []

    def answered(self, slot: ResponseSlot) -> None:
        self.answered_slots.append(slot)

    def gather_answers(self) -> None:
        raise AssertionError("a slot gathers nothing")

    def hold_back_polls(self) -> None:
        raise AssertionError("a slot holds back nothing")

    def admit_polls(self) -> None:
        raise AssertionError("a slot holds back nothing")


@pytest.fixture
def connection() -> Connection:
    return Connection()


def slot_of(connection: Connection) -> ResponseSlot:
    return ResponseSlot(connection)


def test_only_the_first_answer_counts(connection: Connection) -> None:
    """A request that is answered and times out in the same turn gets one answer."""
    slot = slot_of(connection)
    slot.complete([b"first"])
    slot.complete([b"second"])
    assert connection.answered_slots == [slot]
    assert slot.pieces == [b"first"]


def test_after_the_connection_is_gone_answers_go_nowhere(connection: Connection) -> None:
    slot = slot_of(connection)
    slot.abandon()
    slot.complete([b"late"])
    assert connection.answered_slots == []
    assert slot.pieces is None


def test_answered_slots_are_not_abandoned(connection: Connection) -> None:
    """The connection closes after the answer: nobody is told to stop what is done."""
    slot = slot_of(connection)
    told: list[bool] = []
    slot.on_abandoned = lambda: told.append(True)
    slot.complete(None)
    slot.abandon()
    assert told == []


def test_a_callback_may_complete_the_slot(connection: Connection) -> None:
    """Giving up an operation may try to answer it."""
    slot = slot_of(connection)
    slot.on_abandoned = lambda: slot.complete([b"x"])
    slot.abandon()
    assert connection.answered_slots == []


def test_files_take_no_memory() -> None:
    assert bytes_of([b"12", FileSlice(None, 0, 1 << 30), memoryview(b"345")]) == 5
    assert bytes_of(None) == 0


def test_memory_is_exhausted_at_its_limit() -> None:
    memory = ResponseMemory(100)
    memory.change(99)
    assert not memory.exhausted
    memory.change(1)
    assert memory.exhausted
    memory.change(-50)
    assert not memory.exhausted
    assert memory.held == 50
