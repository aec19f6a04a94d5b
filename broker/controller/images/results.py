"""Results of the items of a metadata change."""

from dataclasses import dataclass

from broker.controller.images.cluster_image import TopicImage
from broker.controller.store.metadata_store import RequestTooLargeError, StoreError
from broker.controller.store.store_writer import ConflictError, NotControllerError
from protocol.error_codes import ErrorCode


@dataclass(frozen=True, slots=True)
class Result:
    """Result of one item of a request."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


@dataclass(frozen=True, slots=True)
class CreateTopicResult:
    """Result of one topic creation; with an error `topic` is None."""

    name: str
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    topic: TopicImage | None = None


def result_of(error: StoreError | None) -> Result:
    """Error for the client when the store could not commit."""
    match error:
        case None:
            return Result()
        case RequestTooLargeError():
            return Result(ErrorCode.POLICY_VIOLATION, str(error))
        case ConflictError():
            return Result(ErrorCode.CONCURRENT_TRANSACTIONS, str(error))
        case NotControllerError():
            return Result(ErrorCode.NOT_CONTROLLER, str(error))
        case _:
            # Whether it was committed is not known. The one retriable code that says so.
            return Result(ErrorCode.REQUEST_TIMED_OUT, f"metadata store: {error}")
