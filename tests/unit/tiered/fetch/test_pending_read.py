"""A read under way: what it takes from flights, and its end."""

from typing import Any
from uuid import UUID

import pytest

from tests.unit.tiered.fetch.remote_history import RemoteHistory
from tiered.errors import StoreUnavailableError
from tiered.fetch.pending_read import Read
from tiered.format.chunk_file import ChunkKey


class _Reader:
    def __init__(self) -> None:
        self.advanced: list[Read] = []
        self.cancelled_reads: list[Read] = []
        self.released_reads: list[Read] = []

    def advance(self, read: Read) -> None:
        self.advanced.append(read)

    def cancelled(self, read: Read) -> None:
        self.cancelled_reads.append(read)

    def released(self, read: Read) -> None:
        self.released_reads.append(read)


class _Flight:
    def __init__(self, *, landed: bool, error: Exception | None = None) -> None:
        self.landed = landed
        self.error = error
        self.result = None


@pytest.fixture
def world() -> tuple[_Reader, Read]:
    reader = _Reader()
    return reader, Read(reader, RemoteHistory(begin=False).request(5))


def _key(chunk: int) -> ChunkKey:
    return ChunkKey(UUID(int=1), chunk)


def test_it_goes_on_with_what_has_landed(world: tuple[_Reader, Read]) -> None:
    reader, read = world
    error = StoreUnavailableError("503")
    flights: dict[Any, Any] = {
        _key(0): _Flight(landed=True, error=error),
        _key(1): _Flight(landed=False),
    }
    read.flights = flights
    read.landed()
    assert read.failed == {_key(0): error}
    assert list(read.flights) == [_key(1)]
    assert reader.advanced == [read]


def test_it_is_cancelled_once(world: tuple[_Reader, Read]) -> None:
    reader, read = world
    read.cancel()
    read.cancel()
    assert reader.cancelled_reads == [read]
    read.landed()
    assert reader.advanced == []


def test_it_is_released_or_cancelled(world: tuple[_Reader, Read]) -> None:
    reader, read = world
    read.release()
    read.cancel()
    read.release()
    assert (reader.released_reads, reader.cancelled_reads) == ([read], [])
    read.landed()
    assert reader.advanced == []


def test_a_finished_read_cannot_be_cancelled(world: tuple[_Reader, Read]) -> None:
    reader, read = world
    read.finished = True
    read.cancel()
    read.landed()
    assert reader.cancelled_reads == reader.advanced == []
