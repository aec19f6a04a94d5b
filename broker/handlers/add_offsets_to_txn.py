"""AddOffsetsToTxn (API key 25), versions 0 to 4.

Behaviour:
- Adds the group's partition of `__consumer_offsets` to a producer's transaction, so that the
  offsets it commits there are pending until the end; answered when that is committed. Clients of
  transaction version 2 send TxnOffsetCommit only.

Versions:
- 2  PRODUCER_FENCED; older ones get INVALID_PRODUCER_EPOCH       KIP-588
- 3  flexible
- 4  TRANSACTION_ABORTABLE                                        KIP-890
"""

from typing import TYPE_CHECKING

from broker.groups.coordinator import OFFSETS_TOPIC
from broker.requests.answer import Answer
from broker.transactions.interfaces import ProducerIdAndEpoch
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from storage.types.topic_partition import TopicPartition

if TYPE_CHECKING:
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.ADD_OFFSETS_TO_TXN
VERSIONS = (0, 4)

FENCED_FROM = 2
"""The first version that knows PRODUCER_FENCED."""

ABORTABLE_FROM = 4
"""The first version that knows TRANSACTION_ABORTABLE."""


def handle(
    services: "Services", context: "RequestContext", request: AddOffsetsToTxnRequest
) -> "AddOffsetsToTxnResponse | Answer[AddOffsetsToTxnResponse]":
    """Add the group's partition."""
    answer: Answer[AddOffsetsToTxnResponse] = Answer()
    version = context.api_version

    def done(code: ErrorCode) -> None:
        if code is ErrorCode.PRODUCER_FENCED and version < FENCED_FROM:
            code = ErrorCode.INVALID_PRODUCER_EPOCH
        elif code is ErrorCode.TRANSACTION_ABORTABLE and version < ABORTABLE_FROM:
            code = ErrorCode.INVALID_REQUEST
        answer(AddOffsetsToTxnResponse(error_code=code))

    services.transactions.add_partitions(
        request.transactional_id,
        ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
        [TopicPartition(OFFSETS_TOPIC, services.groups.partition_for(request.group_id))],
        # Clients of version 2 do not send it.
        client_transaction_version=0,
        done=done,
    )
    return answer.result()
