"""EndTxn (API key 26), versions 0 to 5.

Behaviour:
- Commits or aborts; answered when the outcome is committed to `__transaction_state`. Markers follow
  without the client, see `broker.transactions.coordinator.completion`.
- The same end again is a retry and answered like the first one, another end is INVALID_TXN_STATE;
  the tables are in `broker.transactions.coordinator.end_rules`. A coordinator that may have been
  replaced says NOT_COORDINATOR instead (`broker.transactions.coordinator.unconfirmed_refusals`).

Versions:
- 2  PRODUCER_FENCED; older ones get INVALID_PRODUCER_EPOCH        KIP-588
- 3  flexible
- 4  TRANSACTION_ABORTABLE                                         KIP-890
- 5  transaction version 2: the next transaction's producer id and epoch are in the answer
                                                                   KIP-890
"""

from typing import TYPE_CHECKING

from broker.requests.answer import Answer
from broker.transactions.interfaces import ProducerIdAndEpoch
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.end_txn import EndTxnRequest, EndTxnResponse

if TYPE_CHECKING:
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.END_TXN
VERSIONS = (0, 5)

FENCED_FROM = 2
"""The first version that knows PRODUCER_FENCED."""

EPOCH_BUMP_FROM = 5
"""The version that stands for transaction version 2."""


def handle(
    services: "Services", context: "RequestContext", request: EndTxnRequest
) -> "EndTxnResponse | Answer[EndTxnResponse]":
    """End a transaction."""
    answer: Answer[EndTxnResponse] = Answer()

    def done(code: ErrorCode, producer: ProducerIdAndEpoch) -> None:
        if code is ErrorCode.PRODUCER_FENCED and context.api_version < FENCED_FROM:
            code = ErrorCode.INVALID_PRODUCER_EPOCH
        answer(
            EndTxnResponse(
                error_code=code, producer_id=producer.producer_id, producer_epoch=producer.epoch
            )
        )

    services.transactions.end_transaction(
        request.transactional_id,
        ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
        commit=request.committed,
        client_transaction_version=2 if context.api_version >= EPOCH_BUMP_FROM else 0,
        done=done,
    )
    return answer.result()
