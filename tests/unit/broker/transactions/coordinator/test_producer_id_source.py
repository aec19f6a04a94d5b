"""Producer ids: at once, later, or not at all."""

import asyncio
from typing import Any, cast

import pytest

from broker.controller.store.metadata_store import StoreError
from broker.runtime.errors import ApiError
from broker.transactions.coordinator.producer_id_source import ProducerIdSource
from protocol.error_codes import ErrorCode
from tests.harness.transactions import FakeProducerIds


def source(ids: FakeProducerIds) -> ProducerIdSource:
    return ProducerIdSource(lambda: cast("Any", ids))


def test_ids_that_are_there() -> None:
    assert source(FakeProducerIds()).try_next() == 1000


async def test_ids_that_come_later() -> None:
    ids = FakeProducerIds()
    ids.available = False
    asked = source(ids)
    taken: list[int] = []
    failed: list[ErrorCode] = []
    assert asked.try_next() is None
    asked.request(taken.append, failed.append)
    await asyncio.sleep(0)
    assert not taken
    ids.arrive()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert (taken, failed) == ([1000], [])


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (ApiError(ErrorCode.UNKNOWN_SERVER_ERROR), ErrorCode.UNKNOWN_SERVER_ERROR),
        (StoreError("gone"), ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
    ],
)
async def test_ids_that_never_come(failure: Exception, code: ErrorCode) -> None:
    ids = FakeProducerIds()
    ids.failure = failure
    failed: list[ErrorCode] = []
    source(ids).request(lambda _: None, failed.append)
    await asyncio.sleep(0)
    assert failed == [code]


async def test_nobody_is_answered_after_the_end() -> None:
    ids = FakeProducerIds()
    asked = source(ids)
    answers: list[object] = []
    asked.request(answers.append, answers.append)
    await asyncio.sleep(0)
    await asked.stop()
    assert ids.waiting[0].cancelled()
    assert answers == []
