"""ListTransactions (API key 66), versions 0 to 2 (KIP-664).

Behaviour:
- All transactional ids that are coordinated here, or those that pass every filter. Unknown states
  are listed in the response, and match nothing.
- While a partition is being loaded some would be missing: COORDINATOR_LOAD_IN_PROGRESS. While
  another broker may coordinate some by now: COORDINATOR_NOT_AVAILABLE.
- A pattern is one of RE2's and takes bounded time, in a thread; Kafka uses Java's, which need not
  end. Characters outside ASCII are neither letters nor digits to it, but `.` matches them. One that
  is malformed, or takes too much work: INVALID_REGULAR_EXPRESSION.

Versions:
- 1  those that have been open for longer than a duration   KIP-994
- 2  those whose transactional id matches a pattern         KIP-1152
"""

import asyncio
import re
from typing import TYPE_CHECKING

from broker.groups.regex.topic_regex import InvalidRegexError, TopicRegex
from broker.transactions.coordinator.transaction_metadata import TransactionMetadata
from broker.transactions.coordinator.transaction_state import BY_LABEL
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)

if TYPE_CHECKING:
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.LIST_TRANSACTIONS
VERSIONS = (0, 2)

_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_STAND_IN = "\x7f"


async def handle(
    services: "Services", context: "RequestContext", request: ListTransactionsRequest
) -> ListTransactionsResponse:
    """List from memory, in slices."""
    coordinator = services.transactions
    if not coordinator.is_running or coordinator.is_in_doubt:
        return ListTransactionsResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    if coordinator.is_loading:
        return ListTransactionsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    wanted = _Filter(request, services.clock.now_ms())
    found = [metadata async for metadata in coordinator.transactions() if wanted.passes(metadata)]
    if request.transactional_id_pattern:
        names = [metadata.transactional_id for metadata in found]
        try:
            matching = await asyncio.get_running_loop().run_in_executor(
                None, _match, request.transactional_id_pattern, names
            )
        except InvalidRegexError:
            return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
        found = [metadata for metadata in found if metadata.transactional_id in matching]
    return ListTransactionsResponse(
        unknown_state_filters=[
            label for label in dict.fromkeys(request.state_filters) if label not in BY_LABEL
        ],
        transaction_states=[
            TransactionState(
                transactional_id=metadata.transactional_id,
                producer_id=metadata.producer_id,
                transaction_state=metadata.state.label,
            )
            for metadata in found
        ],
    )


class _Filter:
    """The filters that need no name: state, producer id, duration."""

    def __init__(self, request: ListTransactionsRequest, now_ms: int) -> None:
        self._producer_ids = frozenset(request.producer_id_filters)
        self._states = frozenset(
            BY_LABEL[label] for label in request.state_filters if label in BY_LABEL
        )
        self._has_states = bool(request.state_filters)
        self._duration_ms = request.duration_filter
        self._now_ms = now_ms

    def passes(self, metadata: TransactionMetadata) -> bool:
        """Whether it matches all filters."""
        if self._producer_ids and metadata.producer_id not in self._producer_ids:
            return False
        if self._has_states and metadata.state not in self._states:
            return False
        return (
            self._duration_ms < 0 or self._now_ms - metadata.start_timestamp_ms > self._duration_ms
        )


def _match(pattern: str, names: list[str]) -> set[str]:
    """The matching names; called in a thread.

    Raises:
        InvalidRegexError: See the module.
    """
    regex = TopicRegex.compile(pattern)
    return {name for name in names if regex.matches(_NOT_ASCII.sub(_STAND_IN, name))}
