"""What tests of several folders share: servers that take seconds to start."""

from collections.abc import Iterator

import pytest

from tests.fakes.moto_server import moto_server


@pytest.fixture(scope="session")
def moto_url() -> Iterator[str]:
    """Address of an S3 server that is there for the whole run; buckets are the tests' own."""
    with moto_server() as endpoint_url:
        yield endpoint_url
