"""What tests of several folders share: how properties search, servers that take seconds."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.fakes.moto_server import moto_server

# A run tells of the change under test, not of luck: the same inputs every time. New ones are looked
# for by `make test-search`, whose finds become `@example`s. Nor does it tell of who else keeps the
# machine busy: how long an input takes, to make or to try, fails nothing.
ANY_SPEED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("settled", ANY_SPEED, derandomize=True)
settings.register_profile("search", ANY_SPEED, derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "settled"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--lake-kills", type=int, default=10, help="of each kind, in slow tests of lake jobs"
    )
    parser.addoption("--lake-seed", type=int, default=None, help="of what those tests draw")


@pytest.fixture(scope="session")
def moto_url() -> Iterator[str]:
    """Address of an S3 server that is there for the whole run; buckets are the tests' own."""
    with moto_server() as endpoint_url:
        yield endpoint_url
