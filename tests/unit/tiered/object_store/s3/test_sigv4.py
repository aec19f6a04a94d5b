"""Our signature beside botocore's."""

from datetime import UTC, datetime
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.effort import examples
from tiered.object_store.s3.credentials import Credentials
from tiered.object_store.s3.sigv4 import RangeSigner, quoted_path

NOW_MS = 1_795_000_000_123


def headers_of(request: bytes) -> dict[str, str]:
    lines = request.decode().split("\r\n")
    assert lines[-2:] == ["", ""]
    return dict(line.split(":", 1) for line in lines[1:-2])


def botocore_authorization(
    url: str, headers: dict[str, str], credentials: Credentials, region: str
) -> str:
    from botocore import auth, awsrequest
    from botocore import credentials as their_credentials

    request = awsrequest.AWSRequest("GET", url, headers={"Range": headers["range"]})
    request.context["payload_signing_enabled"] = False
    request.context["client_config"] = mock.Mock(s3={"payload_signing_enabled": True})
    moment = datetime.fromtimestamp(NOW_MS // 1000, UTC)
    naive = moment.replace(tzinfo=None)
    with mock.patch.object(auth, "get_current_datetime", return_value=naive):
        signer: Any = auth.S3SigV4Auth(their_credentials.Credentials(*credentials), "s3", region)
        signer.add_auth(request)
    assert request.headers["X-Amz-Date"] == headers["x-amz-date"]
    assert request.headers["X-Amz-Content-SHA256"] == headers["x-amz-content-sha256"]
    return str(request.headers["Authorization"])


@examples(60)
@given(
    key=st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=40).filter(
        lambda key: not {"", ".", ".."} & set(key.split("/"))
    ),
    token=st.sampled_from([None, "tok/en+="]),
    position=st.integers(0, 1 << 40),
    length=st.integers(1, 1 << 30),
    region=st.sampled_from(["us-east-1", "eu-central-1"]),
)
def test_it_is_the_signature_that_botocore_makes(
    key: str, token: str | None, position: int, length: int, region: str
) -> None:
    credentials = Credentials("AKID", "sec/ret+", token)
    path = quoted_path(f"/bucket/{key}")
    request = RangeSigner("s3.example.org:9000", region).request(
        path, position, length, credentials, NOW_MS
    )
    headers = headers_of(request)
    assert request.startswith(f"GET {path} HTTP/1.1\r\n".encode())
    assert headers["range"] == f"bytes={position}-{position + length - 1}"
    assert headers["authorization"] == botocore_authorization(
        f"http://s3.example.org:9000{path}", headers, credentials, region
    )


def test_the_key_of_the_day_is_made_anew_for_another_day_or_secret() -> None:
    signer = RangeSigner("host", "us-east-1")
    first, second = Credentials("a", "one"), Credentials("a", "two")
    day_ms = 24 * 3600 * 1000

    def signed(credentials: Credentials, now_ms: int, with_signer: RangeSigner) -> str:
        return headers_of(with_signer.request("/k", 0, 1, credentials, now_ms))["authorization"]

    for credentials, now_ms in ((first, 0), (second, 0), (second, day_ms), (first, 0)):
        fresh = signed(credentials, now_ms, RangeSigner("host", "us-east-1"))
        assert signed(credentials, now_ms, signer) == fresh


@pytest.mark.parametrize(
    ("path", "quoted"),
    [
        ("/b/a b", "/b/a%20b"),
        ("/b/a+b~c_d-e.f", "/b/a%2Bb~c_d-e.f"),
        ("/b/é", "/b/%C3%A9"),
        ("/b/%41", "/b/%2541"),
        ("/b/a?b#c", "/b/a%3Fb%23c"),
    ],
)
def test_paths_are_quoted_once(path: str, quoted: str) -> None:
    assert quoted_path(path) == quoted
