"""InitProducerId, in every version."""

import asyncio

import pytest

from broker.controller.producer_ids import PRODUCER_ID_BLOCK_SIZE
from broker.handlers import init_producer_id
from protocol.error_codes import ErrorCode
from protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from tests.fakes.controller import context_of, open_controller, services_of
from tests.fakes.metadata_store import Fault, MemoryStore
from tests.fakes.wire import call, versions_of

VERSIONS = versions_of(init_producer_id)


@pytest.mark.parametrize("version", VERSIONS)
async def test_each_producer_gets_its_own_id(version: int) -> None:
    """With epoch 0; the second one without waiting for anything."""
    controller = await open_controller()
    services = services_of(controller)
    request = InitProducerIdRequest(transactional_id=None)
    first = await call(init_producer_id, services, request, version)
    assert (first.error_code, first.producer_id, first.producer_epoch) == (0, 0, 0)
    context = context_of(init_producer_id.API_KEY, version)
    second = init_producer_id.handle(services, context, request)
    assert isinstance(second, InitProducerIdResponse)
    assert second.producer_id == 1


async def test_ids_of_a_dead_broker_are_never_given_again() -> None:
    store = MemoryStore()
    request = InitProducerIdRequest(transactional_id=None)
    given = set()
    for life in range(3):
        controller = await open_controller(MemoryStore(disk=store.disk))
        services = services_of(controller)
        for _ in range(5):
            given.add((await call(init_producer_id, services, request, 4)).producer_id)
        assert len(given) == 5 * (life + 1)
    assert max(given) >= 2 * PRODUCER_ID_BLOCK_SIZE


@pytest.mark.parametrize("version", VERSIONS)
async def test_transactional_producers_are_told_at_once_that_there_are_no_transactions(
    version: int,
) -> None:
    """With a code that is not retriable: they would hang otherwise."""
    controller = await open_controller()
    request = InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=1000)
    response = await call(init_producer_id, services_of(controller), request, version)
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert not ErrorCode(response.error_code).retriable
    assert response.producer_id == -1


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (InitProducerIdRequest(transactional_id=""), ErrorCode.INVALID_REQUEST),
        (
            InitProducerIdRequest(transactional_id=None, producer_id=5),
            ErrorCode.INVALID_REQUEST,
        ),
        (
            InitProducerIdRequest(transactional_id=None, producer_epoch=5),
            ErrorCode.INVALID_REQUEST,
        ),
        (
            InitProducerIdRequest(transactional_id=None, producer_id=5, producer_epoch=3),
            ErrorCode.NONE,
        ),
    ],
)
async def test_what_the_client_says_it_has(
    request_: InitProducerIdRequest, error: ErrorCode
) -> None:
    """Both or neither; a producer without transactions gets a new id in any case."""
    controller = await open_controller()
    response = await call(init_producer_id, services_of(controller), request_, 3)
    assert response.error_code == error
    assert response.producer_id == (0 if error is ErrorCode.NONE else -1)


async def test_store_that_fails_makes_clients_retry() -> None:
    store = MemoryStore()
    controller = await open_controller(store)
    services = services_of(controller)
    request = InitProducerIdRequest(transactional_id=None)
    store.faults = [Fault.REFUSED]
    failed = await call(init_producer_id, services, request, 4)
    assert failed.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert ErrorCode(failed.error_code).retriable
    assert (await call(init_producer_id, services, request, 4)).error_code == 0


async def test_waiting_client_occupies_nobody() -> None:
    """While the block is on its way the handler has returned a future."""
    store = MemoryStore()
    controller = await open_controller(store)
    store.gate.clear()
    context = context_of(init_producer_id.API_KEY, 4)
    request = InitProducerIdRequest(transactional_id=None)
    waiting = init_producer_id.handle(services_of(controller), context, request)
    assert isinstance(waiting, asyncio.Future)
    store.gate.set()
    assert (await waiting).producer_id == 0
