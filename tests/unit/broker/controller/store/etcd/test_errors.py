"""An error of etcd's says whether a request was made, will never be, or may yet be."""

import pytest
from grpc import StatusCode

from broker.controller.store.etcd.errors import is_token_refused, store_error
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


@pytest.mark.parametrize(
    ("code", "details", "kind"),
    [
        (
            StatusCode.OUT_OF_RANGE,
            "etcdserver: mvcc: required revision has been compacted",
            CompactedError,
        ),
        (
            StatusCode.OUT_OF_RANGE,
            "etcdserver: mvcc: required revision is a future revision",
            FutureRevisionError,
        ),
        (StatusCode.NOT_FOUND, "etcdserver: requested lease not found", LeaseNotFoundError),
        (
            StatusCode.INVALID_ARGUMENT,
            "etcdserver: duplicate key given in txn request",
            DuplicateKeyError,
        ),
        (
            StatusCode.INVALID_ARGUMENT,
            "etcdserver: too many operations in txn request",
            RequestTooLargeError,
        ),
        (StatusCode.INVALID_ARGUMENT, "etcdserver: request is too large", RequestTooLargeError),
        (
            StatusCode.RESOURCE_EXHAUSTED,
            "etcdserver: mvcc: database space exceeded",
            StoreFullError,
        ),
        (StatusCode.RESOURCE_EXHAUSTED, "etcdserver: too many requests", StoreUnavailableError),
        (StatusCode.PERMISSION_DENIED, "etcdserver: permission denied", StoreDeniedError),
        (StatusCode.INVALID_ARGUMENT, "etcdserver: user name is empty", StoreDeniedError),
        (
            StatusCode.FAILED_PRECONDITION,
            "etcdserver: authentication is not enabled",
            StoreDeniedError,
        ),
        (StatusCode.UNAVAILABLE, "etcdserver: request timed out", OutcomeUnknownError),
        (StatusCode.UNAVAILABLE, "etcdserver: leader changed", OutcomeUnknownError),
        (StatusCode.UNAVAILABLE, "Socket closed", OutcomeUnknownError),
        (StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded", OutcomeUnknownError),
        (StatusCode.CANCELLED, "", OutcomeUnknownError),
        (StatusCode.UNKNOWN, "something new", OutcomeUnknownError),
    ],
)
def test_errors(code: StatusCode, details: str, kind: type[StoreError]) -> None:
    """What is not known to be refused is not taken for refused."""
    assert type(store_error(code, details, "127.0.0.1:2379")) is kind


@pytest.mark.parametrize(
    ("details", "refused"),
    [
        ("etcdserver: invalid auth token", True),
        ("etcdserver: user name is empty", True),
        ("etcdserver: revision of auth store is old", True),
        ("etcdserver: permission denied", False),
        ("etcdserver: authentication failed, invalid user ID or password", False),
        ("", False),
        (None, False),
    ],
)
def test_a_refused_token_is_told_from_a_refused_user(details: str | None, refused: bool) -> None:
    assert is_token_refused(details) is refused
