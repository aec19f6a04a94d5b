"""One client for all calls: opened once, with credentials that may be rotated."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from config.object_store import StoreSettings
from storage.environment.clock import SystemClock
from storage.environment.local_filesystem import LocalFilesystem
from storage.environment.randomness import SeededRandomness
from tests.fakes.clock import ManualClock
from tests.fakes.s3.faulty_server import S3Fault, S3Faults
from tests.fakes.s3.moto_server import make_bucket, s3_settings
from tiered.errors import StoreDeniedError
from tiered.object_store.s3.credentials import Credentials, CredentialsFile
from tiered.object_store.s3.store import S3ObjectStore


def store_with(settings: StoreSettings, source: Any) -> S3ObjectStore:
    return S3ObjectStore(settings, SystemClock(), SeededRandomness(1), credentials=source)


@pytest.mark.parametrize("method", ["PUT", "GET"])
async def test_a_rotated_file_is_used_without_a_restart(
    moto_url: str, tmp_path: Path, method: str
) -> None:
    """The old key is refused, the file has a new one: nobody notices."""
    path = tmp_path / "credentials"
    text = "[default]\naws_access_key_id={}\naws_secret_access_key=s\n"
    path.write_text(text.format("old"))
    await make_bucket(s3_settings(moto_url, "rotation"))
    async with S3Faults(moto_url) as proxy:
        # Its clock stands: only the refusal can make it look again.
        source = CredentialsFile(LocalFilesystem(), str(path), "default", ManualClock())
        store = store_with(s3_settings(proxy.url, "rotation"), source)
        await store.put("a", b"12345")
        path.write_text(text.format("new"))
        assert (await source.current()).access_key_id == "old"
        # The fast path hands a refusal to the library, which is refused as well.
        times = 2 if method == "GET" else 1
        fault = proxy.fail(
            S3Fault.STATUS, method=method, status=403, code="AccessDenied", times=times
        )
        if method == "PUT":
            await store.put("a", b"54321")
        else:
            buffer = bytearray(5)
            await store.get_range("a", 0, 5, memoryview(buffer))
            assert buffer == b"12345"
        assert fault.hits == times
        assert (await source.current()).access_key_id == "new"
        proxy.fail(S3Fault.STATUS, status=403, code="AccessDenied")
        with pytest.raises(StoreDeniedError):
            await store.put("a", b"x")
        await store.close()


async def test_all_that_were_refused_with_old_credentials_are_made_again(
    moto_url: str, tmp_path: Path
) -> None:
    """Parts are sent side by side; the first refusal must not leave the second without hope."""
    path = tmp_path / "credentials"
    text = "[default]\naws_access_key_id={}\naws_secret_access_key=s\n"
    path.write_text(text.format("old"))
    await make_bucket(s3_settings(moto_url, "rotation"))
    async with S3Faults(moto_url) as proxy:
        source = CredentialsFile(LocalFilesystem(), str(path), "default", ManualClock())
        store = store_with(s3_settings(proxy.url, "rotation"), source)
        await store.put("a", b"12345")
        path.write_text(text.format("new"))
        fault = proxy.fail(S3Fault.STATUS, method="PUT", status=403, code="AccessDenied", times=4)
        await asyncio.gather(*(store.put(f"b{number}", b"54321") for number in range(4)))
        assert fault.hits == 4
        await store.close()


class RefusingSource:
    changes = 0

    def __init__(self) -> None:
        self.asked = 0
        self.refusing = True

    async def current(self) -> Credentials:
        self.asked += 1
        if self.refusing:
            raise StoreDeniedError("no credentials in /x")
        return Credentials("key", "secret")

    def refused(self, changes: int) -> bool:
        return False


async def test_credentials_that_come_later_are_used(moto_url: str) -> None:
    """And no half-made client is left behind."""
    await make_bucket(s3_settings(moto_url, "later"))
    source = RefusingSource()
    store = store_with(s3_settings(moto_url, "later"), source)
    for _ in range(2):
        with pytest.raises(StoreDeniedError, match="/x"):
            await store.put("a", b"1")
    source.refusing = False
    await store.put("a", b"1")
    assert await store.get("a", max_bytes=1) == b"1"
    await store.close()


async def test_many_first_calls_open_one_client(moto_url: str) -> None:
    await make_bucket(s3_settings(moto_url, "many"))
    source = RefusingSource()
    source.refusing = False
    store = store_with(s3_settings(moto_url, "many"), source)
    clients = await asyncio.gather(*(store._calls._open() for _ in range(5)))
    assert len({id(client) for client in clients}) == 1
    await store.close()


async def test_the_machines_own_credentials(moto_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    await make_bucket(s3_settings(moto_url, "machine"))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "from-the-environment")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    store = store_with(s3_settings(moto_url, "machine"), None)
    await store.put("a", b"1")
    buffer = bytearray(1)
    await store.get_range("a", 0, 1, memoryview(buffer))
    assert buffer == b"1"
    assert store.statistics.fallbacks == 0
    await store.close()
