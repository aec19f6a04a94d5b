"""moto's S3 server in a process of its own, for as long as the tests run.

Not in a thread: libraries that wait for an answer with Python's lock held (deltalake's `history`)
would wait for ever for a server that needs the lock to answer.
"""

import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from config.object_store import StoreSettings
from tiered.object_store.s3.client import new_session

ROOT = Path(__file__).resolve().parents[3]


@contextmanager
def moto_server() -> Iterator[str]:
    """Its address on this machine."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.fakes.s3.moto_server"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address, "moto's server did not start"
        try:
            yield address
        finally:
            process.stdin.close()


def serve() -> None:
    """Serve until standard input ends, as it does with the test run that started this."""
    # Its imports warn about themselves, which is not for us to mend.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from moto.server import ThreadedMotoServer
        from werkzeug.serving import WSGIRequestHandler
    # The server writes a line per request to standard error.
    with mock.patch.object(WSGIRequestHandler, "log", _say_nothing):
        server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
        server.start()
        host, port = server.get_host_and_port()
        sys.stdout.write(f"http://{host}:{port}\n")
        sys.stdout.flush()
        sys.stdin.read()
        server.stop()


def _say_nothing(*_: Any) -> None:
    return


def s3_settings(endpoint_url: str, bucket: str, **changes: Any) -> StoreSettings:
    """Settings for a store in a test; the keys are those that every test server here takes."""
    settings: dict[str, Any] = {
        "backend": "s3",
        "bucket": bucket,
        "region": "us-east-1",
        "endpoint_url": endpoint_url,
        "path_style": True,
        "access_key_id": "varve-test",
        "secret_access_key": "varve-test-secret",
        **changes,
    }
    return StoreSettings(**settings)


_MADE: set[tuple[str, str]] = set()


async def make_bucket(settings: StoreSettings) -> None:
    """Make the bucket that the settings name, once; one that exists is fine."""
    if (settings.endpoint_url, settings.bucket) in _MADE:
        return
    from aiobotocore.config import AioConfig

    # As a store does it: what the library says of S3 is then read once in a process.
    async with new_session().create_client(
        "s3",
        region_name=settings.region,
        endpoint_url=settings.endpoint_url,
        aws_access_key_id=settings.access_key_id,
        aws_secret_access_key=settings.secret_access_key,
        config=AioConfig(s3={"addressing_style": "path"}),
    ) as client:
        try:
            await client.create_bucket(Bucket=settings.bucket)
        except client.exceptions.ClientError as error:
            if error.response["Error"]["Code"] not in (
                "BucketAlreadyOwnedByYou",
                "BucketAlreadyExists",
            ):
                raise
    _MADE.add((settings.endpoint_url, settings.bucket))


if __name__ == "__main__":
    serve()
