"""Mapping of S3's and its client library's errors to those of `tiered.errors`.

answer                                              error
NoSuchKey, and 404 without any code                 ObjectNotFoundError
NoSuchBucket                                        RemoteStorageError, says what to do
NoSuchUpload                                        NoSuchUploadError
401, 403, ExpiredToken, ...                         StoreDeniedError
501, NotImplemented                                 NotImplementedByStoreError
408, 429, 5xx, SlowDown, RequestTimeout, ...        StoreUnavailableError
time-outs of the client                             StoreTimeoutError
everything else of the network                      StoreUnavailableError
other 4xx, 3xx                                      RemoteStorageError
"""

from typing import Final

from tiered.errors import (
    ObjectNotFoundError,
    RemoteStorageError,
    StoreDeniedError,
    StoreTimeoutError,
    StoreUnavailableError,
)

DENIED_CODES: Final = frozenset(
    (
        "AccessDenied",
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidAccessKeyId",
        "InvalidToken",
        "RequestTimeTooSkewed",
        "SignatureDoesNotMatch",
        "TokenRefreshRequired",
        # versitygw, with status 404, where S3 says InvalidAccessKeyId.
        "XAdminUserNotFound",
    )
)

UNAVAILABLE_CODES: Final = frozenset(
    (
        "BadDigest",
        "BandwidthLimitExceeded",
        "IncompleteBody",
        "InternalError",
        "OperationAborted",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestTimeout",
        "RequestTimeoutException",
        "ServiceUnavailable",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
    )
)

_NO_OBJECT_CODES: Final = frozenset(("", "NotFound", "NoSuchVersion"))
"""With status 404. Any other code tells of something else that is missing, a user, say."""

_RETRIED_STATUSES: Final = frozenset((408, 409, 425, 429))


class NoSuchUploadError(RemoteStorageError):
    """The multipart upload was completed or aborted, or never begun."""


class NotImplementedByStoreError(RemoteStorageError):
    """An S3-compatible store without this call."""


def answer_error(status: int, code: str, message: str, key: str, doing: str) -> RemoteStorageError:
    """The error for an answer; `code` is S3's, "" where the answer had none."""
    text = f"{doing}: {status} {code} {message}".rstrip()
    if code == "NoSuchBucket":
        return RemoteStorageError(f"{text} (the bucket must exist: Varve does not create it)")
    if code == "NoSuchUpload":
        return NoSuchUploadError(text)
    if status in (401, 403) or code in DENIED_CODES:
        return StoreDeniedError(text)
    if status == 501 or code == "NotImplemented":
        return NotImplementedByStoreError(text)
    if status >= 500 or status in _RETRIED_STATUSES or code in UNAVAILABLE_CODES:
        return StoreUnavailableError(text)
    if code == "NoSuchKey" or (status == 404 and code in _NO_OBJECT_CODES):
        return ObjectNotFoundError(key)
    if 300 <= status < 400:
        return RemoteStorageError(
            f"{text} (rsm.config.storage.s3.endpoint.url and .region must be the bucket's own: "
            "redirections are not followed)"
        )
    return RemoteStorageError(text)


def client_error(error: Exception, key: str, doing: str) -> RemoteStorageError | None:
    """The error for an exception of aiobotocore, botocore or aiohttp; None: it is none of theirs.

    Only called when something has failed, so the libraries are loaded by then.
    """
    import aiohttp
    from botocore import exceptions

    if isinstance(error, RemoteStorageError):
        return error
    if isinstance(error, exceptions.ClientError):
        answer = error.response
        details = answer.get("Error", {})
        status = int(answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
        code = str(details.get("Code", ""))
        # Without a body botocore puts the status where the code would be.
        if code.isdigit():
            status, code = int(code), ""
        return answer_error(status, code, str(details.get("Message", "")), key, doing)
    text = f"{doing}: {type(error).__name__}: {error}"
    if isinstance(
        error,
        (exceptions.ConnectTimeoutError, exceptions.ReadTimeoutError, TimeoutError),
    ):
        return StoreTimeoutError(text)
    if isinstance(
        error,
        (
            exceptions.NoCredentialsError,
            exceptions.PartialCredentialsError,
            exceptions.CredentialRetrievalError,
        ),
    ):
        return StoreDeniedError(text)
    if isinstance(
        error,
        (
            exceptions.HTTPClientError,
            exceptions.ConnectionError,
            exceptions.IncompleteReadError,
            aiohttp.ClientError,
            OSError,
        ),
    ) or type(error).__module__.startswith("botocore.parsers"):
        return StoreUnavailableError(text)
    if isinstance(error, exceptions.BotoCoreError):
        return RemoteStorageError(text)
    return None
