"""InitProducerId, in every version."""

import asyncio

import pytest

from broker.controller.producer_ids import PRODUCER_ID_BLOCK_SIZE
from broker.handlers import init_producer_id
from protocol.error_codes import ErrorCode
from protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from tests.fakes.broker.controller import context_of, open_controller, services_of
from tests.fakes.broker.metadata_store import Fault, MemoryStore
from tests.fakes.broker.wire import call, versions_of
from tests.unit.broker.handlers.transactions_fixture import Transactions

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


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (
            InitProducerIdRequest(transactional_id="tx", producer_id=5),
            ErrorCode.INVALID_REQUEST,
        ),
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


# -- with a transactional id --


def begin(
    t: Transactions,
    version: int,
    name: str = "tx",
    *,
    timeout_ms: int = 1_000,
    producer_id: int = -1,
    producer_epoch: int = -1,
) -> tuple[int, int, int]:
    request = InitProducerIdRequest(
        transactional_id=name,
        transaction_timeout_ms=timeout_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )
    answer = t.send(init_producer_id, request, version)
    return answer.error_code, answer.producer_id, answer.producer_epoch


@pytest.mark.parametrize("version", VERSIONS)
def test_every_life_has_its_epoch(transactions: Transactions, version: int) -> None:
    assert begin(transactions, version) == (0, 1000, 0)
    assert begin(transactions, version) == (0, 1000, 1)
    assert begin(transactions, version, "other") == (0, 1001, 0)
    assert transactions.metadata().timeout_ms == 1_000


@pytest.mark.parametrize("version", VERSIONS)
def test_requests_that_make_no_sense(transactions: Transactions, version: int) -> None:
    assert begin(transactions, version, "") == (ErrorCode.INVALID_REQUEST, -1, -1)
    for timeout_ms in (0, 900_001):
        code, *_ = begin(transactions, version, timeout_ms=timeout_ms)
        assert code == ErrorCode.INVALID_TRANSACTION_TIMEOUT


@pytest.mark.parametrize("version", [v for v in VERSIONS if v >= 3])
def test_same_process_goes_on(transactions: Transactions, version: int) -> None:
    """And one that was replaced is told so in words that it knows."""
    assert begin(transactions, version) == (0, 1000, 0)
    assert begin(transactions, version, producer_id=1000, producer_epoch=0) == (0, 1000, 1)
    begin(transactions, version)
    fenced = ErrorCode.PRODUCER_FENCED if version >= 4 else ErrorCode.INVALID_PRODUCER_EPOCH
    assert begin(transactions, version, producer_id=1000, producer_epoch=1) == (fenced, -1, -1)


def test_answer_waits_for_the_record(transactions: Transactions) -> None:
    transactions.log.hold = True
    transactions.loop.call_later(0, transactions.log.commit_held)
    assert begin(transactions, 5) == (0, 1000, 0)
