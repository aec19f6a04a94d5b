"""What clients see of a store that could not commit."""

import pytest

from broker.controller.images.results import result_of
from broker.controller.store.metadata_store import (
    RequestTooLargeError,
    StoreError,
    StoreUnavailableError,
)
from broker.controller.store.store_writer import ConflictError
from protocol.error_codes import ErrorCode


@pytest.mark.parametrize(
    ("error", "code", "retriable"),
    [
        (None, ErrorCode.NONE, False),
        (RequestTooLargeError("x"), ErrorCode.POLICY_VIOLATION, False),
        (ConflictError("x"), ErrorCode.CONCURRENT_TRANSACTIONS, True),
        (StoreUnavailableError("x"), ErrorCode.REQUEST_TIMED_OUT, True),
    ],
)
def test_retriable_when_trying_again_may_help(
    error: StoreError | None, code: ErrorCode, retriable: bool
) -> None:
    """A request that is too large stays too large."""
    result = result_of(error)
    assert result.error is code
    assert result.error.retriable is retriable
    assert (result.message is None) is (error is None)
