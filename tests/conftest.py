"""What tests of several folders share: how properties search, servers that take seconds."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.fakes.moto_server import moto_server

# A run tells of the change under test, not of luck: the same inputs every time. New ones are looked
# for by `make test-search`, whose finds become `@example`s.
settings.register_profile("settled", derandomize=True)
settings.register_profile("search", derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "settled"))


@pytest.fixture(scope="session")
def moto_url() -> Iterator[str]:
    """Address of an S3 server that is there for the whole run; buckets are the tests' own."""
    with moto_server() as endpoint_url:
        yield endpoint_url
