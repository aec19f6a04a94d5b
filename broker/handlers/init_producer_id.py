"""InitProducerId (API key 22), versions 0 to 5.

Behaviour:
- Without a transactional id: a new producer id, epoch 0, whatever producer id and epoch the request
  has.
- With one: the transaction coordinator assigns the producer a new epoch, see
  `broker.transactions.coordinator.init_producer_id`; answered when that is committed.
- An empty transactional id, or a producer id without an epoch or the other way round:
  INVALID_REQUEST.
- A timeout that is not positive or above `transaction.max.timeout.ms`: INVALID_TRANSACTION_TIMEOUT.
- While the metadata store has no ids to assign: COORDINATOR_LOAD_IN_PROGRESS, clients retry.

Versions:
- 2  flexible
- 3  the client's producer id and epoch                           KIP-360
- 4  PRODUCER_FENCED; older ones get INVALID_PRODUCER_EPOCH       KIP-588
- 5  TRANSACTION_ABORTABLE                                        KIP-890
"""

import asyncio
from typing import TYPE_CHECKING

from broker.controller.store.metadata_store import StoreError
from broker.requests.answer import Answer
from broker.runtime.errors import ApiError
from broker.transactions.interfaces import ProducerIdAndEpoch
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from broker.controller.producer_ids import ProducerIds
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.INIT_PRODUCER_ID
VERSIONS = (0, 5)

Later = Answer[InitProducerIdResponse] | asyncio.Future[InitProducerIdResponse]

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1

FENCED_FROM = 4
"""The first version that knows PRODUCER_FENCED."""


def handle(
    services: "Services", context: "RequestContext", request: InitProducerIdRequest
) -> InitProducerIdResponse | Later:
    """Answer at once, or when ids are available, or when the new epoch is committed."""
    has_id = request.producer_id != NO_PRODUCER_ID
    has_epoch = request.producer_epoch != NO_PRODUCER_EPOCH
    if has_id != has_epoch:
        return _failure(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        return _begin(services, context, request, request.transactional_id, has_id=has_id)
    producer_ids = services.controller.producer_ids
    producer_id = producer_ids.try_next()
    if producer_id is None:
        return asyncio.get_running_loop().create_task(_later(producer_ids))
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _begin(
    services: "Services",
    context: "RequestContext",
    request: InitProducerIdRequest,
    transactional_id: str,
    *,
    has_id: bool,
) -> "InitProducerIdResponse | Answer[InitProducerIdResponse]":
    answer: Answer[InitProducerIdResponse] = Answer()

    def done(code: ErrorCode, producer: ProducerIdAndEpoch) -> None:
        if code is ErrorCode.NONE:
            answer(
                InitProducerIdResponse(
                    producer_id=producer.producer_id, producer_epoch=producer.epoch
                )
            )
            return
        if code is ErrorCode.PRODUCER_FENCED and context.api_version < FENCED_FROM:
            code = ErrorCode.INVALID_PRODUCER_EPOCH
        answer(_failure(code))

    services.transactions.init_producer_id(
        transactional_id,
        request.transaction_timeout_ms,
        ProducerIdAndEpoch(request.producer_id, request.producer_epoch) if has_id else None,
        done,
    )
    return answer.result()


async def _later(producer_ids: "ProducerIds") -> InitProducerIdResponse:
    try:
        return InitProducerIdResponse(producer_id=await producer_ids.next(), producer_epoch=0)
    except ApiError as error:
        return _failure(error.code)
    except StoreError:
        return _failure(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


def _failure(error: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        error_code=int(error), producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH
    )
