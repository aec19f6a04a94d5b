r"""AWS Signature Version 4 for one kind of request: GET of a byte range of an object.

Botocore signs anything, in 200 us; this signs what is asked for thousands of times, in 15 us, and
`tests/unit/tiered/object_store/s3/test_sigv4.py` holds the two against each other.

    string to sign = "AWS4-HMAC-SHA256" \n time \n scope \n SHA-256(canonical request)
    key            = HMAC(HMAC(HMAC(HMAC("AWS4" + secret, day), region), "s3"), "aws4_request")

Source: AWS, "Signature Version 4 signing process". S3's canonical path is quoted once.
"""

import hashlib
import hmac
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote

from tiered.object_store.s3.credentials import Credentials

EMPTY_SHA256: Final = hashlib.sha256(b"").hexdigest()


def quoted_path(path: str) -> str:
    """As it stands in the request and in what is signed."""
    return quote(path, safe="/-_.~")


class RangeSigner:
    """Makes signed requests for one host; keeps the key of the day.

    Touched by one thread. Nothing here follows from a request: secrets stay out of errors.
    """

    __slots__ = ("_day", "_host", "_region", "_secret", "_signing_key")

    def __init__(self, host: str, region: str) -> None:
        """`host` is the header's value: with the port, unless it is the scheme's own."""
        self._host = host
        self._region = region
        self._day = ""
        self._secret = ""
        self._signing_key = b""

    def request(
        self, path: str, position: int, length: int, credentials: Credentials, now_ms: int
    ) -> bytes:
        """The whole request for `length` bytes from `position`; `path` is quoted already."""
        moment = datetime.fromtimestamp(now_ms // 1000, UTC).strftime("%Y%m%dT%H%M%SZ")
        scope = f"{moment[:8]}/{self._region}/s3/aws4_request"
        names = "host;range;x-amz-content-sha256;x-amz-date"
        headers = (
            f"host:{self._host}\n"
            f"range:bytes={position}-{position + length - 1}\n"
            f"x-amz-content-sha256:{EMPTY_SHA256}\n"
            f"x-amz-date:{moment}\n"
        )
        if credentials.token is not None:
            names += ";x-amz-security-token"
            headers += f"x-amz-security-token:{credentials.token}\n"
        canonical = f"GET\n{path}\n\n{headers}\n{names}\n{EMPTY_SHA256}"
        to_sign = (
            f"AWS4-HMAC-SHA256\n{moment}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
        )
        key = self._key(moment[:8], credentials.secret_access_key)
        signature = hmac.digest(key, to_sign.encode(), "sha256").hex()
        lines = headers.replace("\n", "\r\n")
        return (
            f"GET {path} HTTP/1.1\r\n"
            f"{lines}"
            f"authorization:AWS4-HMAC-SHA256 Credential={credentials.access_key_id}/{scope}, "
            f"SignedHeaders={names}, Signature={signature}\r\n"
            "accept-encoding:identity\r\n\r\n"
        ).encode("latin-1")

    def _key(self, day: str, secret: str) -> bytes:
        if day != self._day or secret != self._secret:
            key = f"AWS4{secret}".encode()
            for part in (day, self._region, "s3", "aws4_request"):
                key = hmac.digest(key, part.encode(), "sha256")
            self._day, self._secret, self._signing_key = day, secret, key
        return self._signing_key
