"""What an error of etcd's gRPC API says of the request that got it.

    code and message                                 here
    OUT_OF_RANGE, required revision ... compacted    CompactedError
    OUT_OF_RANGE, ... future revision                FutureRevisionError
    NOT_FOUND, requested lease not found             LeaseNotFoundError
    INVALID_ARGUMENT, duplicate key                  DuplicateKeyError
    INVALID_ARGUMENT, too many / too large           RequestTooLargeError
    RESOURCE_EXHAUSTED, database space exceeded      StoreFullError        not made
    RESOURCE_EXHAUSTED, too many requests            StoreUnavailableError not made
    UNAUTHENTICATED, PERMISSION_DENIED, other
        INVALID_ARGUMENT, FAILED_PRECONDITION        StoreDeniedError      not made
    UNAVAILABLE, DEADLINE_EXCEEDED, all others       OutcomeUnknownError   perhaps made

Source: etcd, api/v3rpc/rpctypes/error.go.
"""

import re
from typing import Final

from grpc import StatusCode

from broker.controller.store.metadata_store import (
    CompactedError,
    DuplicateKeyError,
    FutureRevisionError,
    LeaseNotFoundError,
    OutcomeUnknownError,
    RequestTooLargeError,
    StoreDeniedError,
    StoreError,
    StoreFullError,
    StoreUnavailableError,
)

NO_AUTHENTICATION: Final = "authentication is not enabled"

_TOKEN_REFUSED: Final = (
    "invalid auth token",
    # None was sent: authentication was enabled since.
    "user name is empty",
    # Users or roles were changed since a signed token was made.
    "revision of auth store is old",
)

_REFUSED: Final = frozenset(
    {
        StatusCode.UNAUTHENTICATED,
        StatusCode.PERMISSION_DENIED,
        StatusCode.INVALID_ARGUMENT,
        StatusCode.FAILED_PRECONDITION,
        StatusCode.UNIMPLEMENTED,
    }
)

_BY_TEXT: Final[tuple[tuple[str, type[StoreError]], ...]] = (
    ("future revision", FutureRevisionError),
    ("requested lease not found", LeaseNotFoundError),
    ("duplicate key given in txn", DuplicateKeyError),
    ("too many operations", RequestTooLargeError),
    ("request is too large", RequestTooLargeError),
    ("trying to send message larger than max", RequestTooLargeError),
    ("database space exceeded", StoreFullError),
    ("too many requests", StoreUnavailableError),
)


def store_error(code: StatusCode, details: str, endpoint: str) -> StoreError:
    """The contract's error for one of gRPC's.

    Args:
        code: gRPC's.
        details: etcd's sentence, which is all that tells some errors of one code apart.
        endpoint: Where it came from, for the message.
    """
    text = details.lower()
    if "has been compacted" in text:
        return CompactedError(_first_number(text))
    for part, kind in _BY_TEXT:
        if part in text:
            return kind(f"etcd {endpoint}: {details}")
    if code in _REFUSED:
        return StoreDeniedError(f"etcd {endpoint} refused a request: {details}")
    return OutcomeUnknownError(f"etcd {endpoint}: {details or code.name} ({code.name})")


def is_token_refused(details: str | None) -> bool:
    """Whether a request was refused, not looked at, and is taken with a new token."""
    return any(part in (details or "") for part in _TOKEN_REFUSED)


def _first_number(text: str) -> int:
    found = re.search(r"\d+", text)
    return int(found.group()) if found else 0
