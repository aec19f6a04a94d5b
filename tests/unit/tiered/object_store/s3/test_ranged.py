"""Where the fast reads go, as botocore would."""

from contextlib import AsyncExitStack
from typing import Any

import pytest

from config.object_store import StoreSettings
from tests.fakes.clock import ManualClock
from tiered.object_store.base import StoreDeadlines
from tiered.object_store.s3.client import new_session, open_client, use_source
from tiered.object_store.s3.credentials import FixedCredentials
from tiered.object_store.s3.ranged import open_ranged_reader
from tiered.object_store.s3.ranged_get import Endpoint
from tiered.object_store.statistics import StoreStatistics


async def endpoint_of(**settings_of: Any) -> Endpoint | None:
    settings = StoreSettings(backend="s3", **settings_of)
    session = new_session()
    source = FixedCredentials("key", "secret")
    use_source(session, source)
    async with AsyncExitStack() as stack:
        client = await open_client(stack, session, settings, StoreDeadlines())
        reader = await open_ranged_reader(
            client,
            session,
            settings,
            StoreDeadlines(),
            source,
            ManualClock(),
            StoreStatistics(ManualClock()),
        )
        return None if reader is None else reader._endpoint


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize(
    ("settings", "host", "port", "path", "secure"),
    [
        (
            {"bucket": "b-1", "region": "eu-central-1"},
            "b-1.s3.eu-central-1.amazonaws.com",
            443,
            "/",
            True,
        ),
        (
            {"bucket": "b-1", "region": "eu-central-1", "path_style": True},
            "s3.eu-central-1.amazonaws.com",
            443,
            "/b-1/",
            True,
        ),
        (
            {"bucket": "b-1", "endpoint_url": "http://minio:9000", "path_style": True},
            "minio",
            9000,
            "/b-1/",
            False,
        ),
        (
            {"bucket": "b-1", "endpoint_url": "https://store.example.org"},
            "b-1.store.example.org",
            443,
            "/",
            True,
        ),
        (
            {"bucket": "b-1", "endpoint_url": "http://gate/base", "path_style": True},
            "gate",
            80,
            "/base/b-1/",
            False,
        ),
    ],
)
async def test_addresses(
    settings: dict[str, Any], host: str, port: int, path: str, secure: bool
) -> None:
    endpoint = await endpoint_of(**settings)
    assert endpoint is not None
    assert (endpoint.host, endpoint.port, endpoint.base_path) == (host, port, path)
    assert (endpoint.tls is not None) is secure
    assert endpoint.region == settings.get("region", "us-east-1")


async def test_no_fast_reads_where_only_the_library_knows_the_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert await endpoint_of(bucket="data--use1-az4--x-s3", region="us-east-1") is None
    monkeypatch.setenv("http_proxy", "http://proxy:3128")
    assert await endpoint_of(bucket="b", endpoint_url="http://gate", path_style=True) is None
