"""One table from what goes wrong inside to what a client is told."""

import inspect
import re

import pytest

from broker.runtime.errors import ApiError, code_of
from protocol.error_codes import ErrorCode
from storage import errors as storage_errors

CLASSES = [
    kind
    for _, kind in inspect.getmembers(storage_errors, inspect.isclass)
    if issubclass(kind, storage_errors.StorageError)
]
PROMISED = [
    (kind, ErrorCode[found[1]])
    for kind in CLASSES
    if (found := re.search(r"(?:Client|Sender) sees ([A-Z][A-Z_]{4,})", kind.__doc__ or ""))
]


def instance(kind: type[Exception]) -> Exception:
    """Any instance, whatever its constructor wants."""
    return kind.__new__(kind)


@pytest.mark.parametrize(
    ("kind", "code"), PROMISED, ids=lambda value: getattr(value, "__name__", "")
)
def test_clients_see_what_the_error_promises(kind: type[Exception], code: ErrorCode) -> None:
    """Each class says in its docstring what the client is told."""
    assert code_of(instance(kind)) is code


def test_most_errors_promise_something() -> None:
    """Else the test above tests nothing."""
    assert len(PROMISED) >= 14


@pytest.mark.parametrize(
    "kind",
    [
        kind
        for kind in CLASSES
        if issubclass(
            kind,
            storage_errors.BatchError | storage_errors.ProducerError | storage_errors.DiskError,
        )
        and kind not in {storage_errors.BatchError, storage_errors.ProducerError}
    ],
)
def test_nothing_a_producer_can_run_into_is_unknown(kind: type[Exception]) -> None:
    """UNKNOWN_SERVER_ERROR would tell it nothing, and some clients give up on it."""
    assert code_of(instance(kind)) is not ErrorCode.UNKNOWN_SERVER_ERROR


def test_errors_that_go_away_by_themselves_are_retriable() -> None:
    """A producer must not drop records because a disk failed or a log is in recovery."""
    for kind in (
        storage_errors.DiskError,
        storage_errors.LogDirectoryOfflineError,
        storage_errors.PartitionLoadingError,
    ):
        assert code_of(instance(kind)).retriable


def test_subclasses_are_as_their_parent() -> None:
    class NewDiskError(storage_errors.DiskError):
        pass

    assert code_of(NewDiskError("full", "/data")) is ErrorCode.KAFKA_STORAGE_ERROR


def test_bugs_are_unknown_server_errors() -> None:
    assert code_of(ZeroDivisionError()) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_api_errors_carry_their_own_code() -> None:
    error = ApiError(ErrorCode.POLICY_VIOLATION, "too many")
    assert code_of(error) is ErrorCode.POLICY_VIOLATION
    assert (str(error), error.message) == ("too many", "too many")
    assert str(ApiError(ErrorCode.FENCED_LEADER_EPOCH)) == "FENCED_LEADER_EPOCH"
    assert ApiError(ErrorCode.FENCED_LEADER_EPOCH).message is None
