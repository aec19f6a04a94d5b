"""What S3 and its client library say, as our errors."""

import aiohttp
import pytest
from botocore import exceptions
from botocore.parsers import ResponseParserError

from tiered.errors import (
    ObjectNotFoundError,
    RemoteStorageError,
    StoreDeniedError,
    StoreTimeoutError,
    StoreUnavailableError,
)
from tiered.object_store.s3.errors import (
    NoSuchUploadError,
    NotImplementedByStoreError,
    answer_error,
    client_error,
)


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (404, "NoSuchKey", ObjectNotFoundError),
        (404, "", ObjectNotFoundError),
        (404, "NotFound", ObjectNotFoundError),
        (404, "NoSuchBucket", RemoteStorageError),
        (404, "XAdminUserNotFound", StoreDeniedError),
        (404, "NoSuchTenant", RemoteStorageError),
        (404, "NoSuchUpload", NoSuchUploadError),
        (403, "AccessDenied", StoreDeniedError),
        (403, "", StoreDeniedError),
        (401, "", StoreDeniedError),
        (400, "ExpiredToken", StoreDeniedError),
        (403, "RequestTimeTooSkewed", StoreDeniedError),
        (400, "RequestTimeout", StoreUnavailableError),
        (400, "BadDigest", StoreUnavailableError),
        (408, "", StoreUnavailableError),
        (409, "OperationAborted", StoreUnavailableError),
        (429, "", StoreUnavailableError),
        (500, "InternalError", StoreUnavailableError),
        (502, "", StoreUnavailableError),
        (503, "SlowDown", StoreUnavailableError),
        (501, "NotImplemented", NotImplementedByStoreError),
        (400, "NotImplemented", NotImplementedByStoreError),
        (301, "PermanentRedirect", RemoteStorageError),
        (400, "InvalidRequest", RemoteStorageError),
        (405, "MethodNotAllowed", RemoteStorageError),
    ],
)
def test_answers(status: int, code: str, kind: type[RemoteStorageError]) -> None:
    error = answer_error(status, code, "why", "a/b", "get s3://x/a/b")
    assert type(error) is kind
    if kind is ObjectNotFoundError:
        assert getattr(error, "key", None) == "a/b"
    else:
        assert "get s3://x/a/b" in str(error)


def test_a_redirection_says_what_to_do() -> None:
    error = answer_error(307, "TemporaryRedirect", "", "a/b", "get s3://x/a/b")
    assert "rsm.config.storage.s3.endpoint.url" in str(error)


def test_a_missing_bucket_says_what_to_do() -> None:
    error = answer_error(404, "NoSuchBucket", "none", "", "list s3://x/")
    assert "the bucket must exist" in str(error)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (exceptions.ConnectTimeoutError(endpoint_url="u"), StoreTimeoutError),
        (exceptions.ReadTimeoutError(endpoint_url="u"), StoreTimeoutError),
        (TimeoutError(), StoreTimeoutError),
        (exceptions.EndpointConnectionError(endpoint_url="u"), StoreUnavailableError),
        (exceptions.ConnectionClosedError(endpoint_url="u"), StoreUnavailableError),
        (exceptions.SSLError(endpoint_url="u", error="e"), StoreUnavailableError),
        (exceptions.ResponseStreamingError(error="e"), StoreUnavailableError),
        (exceptions.IncompleteReadError(actual_bytes=1, expected_bytes=2), StoreUnavailableError),
        (aiohttp.ClientPayloadError(), StoreUnavailableError),
        (ConnectionResetError(), StoreUnavailableError),
        (ResponseParserError("no XML"), StoreUnavailableError),
        (exceptions.NoCredentialsError(), StoreDeniedError),
        (exceptions.ParamValidationError(report="r"), RemoteStorageError),
        (StoreDeniedError("as it is"), StoreDeniedError),
    ],
)
def test_exceptions(error: Exception, kind: type[RemoteStorageError]) -> None:
    assert type(client_error(error, "k", "get k")) is kind


def test_answers_as_the_library_raises_them() -> None:
    def raised(status: int, code: str) -> RemoteStorageError | None:
        response = {
            "Error": {"Code": code, "Message": "m"},
            "ResponseMetadata": {"HTTPStatusCode": status},
        }
        return client_error(exceptions.ClientError(response, "GetObject"), "k", "get k")

    assert type(raised(503, "SlowDown")) is StoreUnavailableError
    # Of an answer without a body, such as that to HEAD.
    assert type(raised(404, "404")) is ObjectNotFoundError
    assert type(raised(403, "403")) is StoreDeniedError


def test_mistakes_of_ours_stay_what_they_are() -> None:
    assert client_error(AttributeError("oops"), "k", "get k") is None
