"""Passwords and certificates that are exchanged while a store is used, on a real etcd."""

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from bench.etcd_server import EtcdServer
from broker.controller.store.etcd.etcd_store import EtcdStore
from broker.controller.store.metadata_store import (
    Put,
    StoreDeniedError,
    StoreError,
    StoreUnavailableError,
)
from broker.node.cluster_store import unopened_store
from broker.offline.opening import command_environment
from config.broker import BrokerConfig
from config.store_address import StoreAddressKind
from tests.harness.certificates import make_certificate
from tests.harness.etcd import change_password, enable_authentication, etcd_or_skip
from tests.harness.store_callers import WITHIN_S, follow, write


@pytest.fixture
def server(tmp_path: Path) -> Iterator[EtcdServer]:
    server = EtcdServer(etcd_or_skip(), tmp_path)
    server.start()
    yield server
    server.kill()


@contextlib.asynccontextmanager
async def opened(address: str, **settings: str) -> AsyncIterator[EtcdStore]:
    """The store as a broker opens it, by its settings; the server may still be starting."""
    parsed = StoreAddressKind().parse("metadata.store", address)
    config = BrokerConfig().replace(metadata_store=parsed, **settings)
    with command_environment() as environment:
        store = await unopened_store(config, environment, name="test")
        assert isinstance(store, EtcdStore)
        try:
            async with asyncio.timeout(WITHIN_S):
                while True:
                    with contextlib.suppress(StoreUnavailableError):
                        await store.greet()
                        break
            yield store
        finally:
            await store.aclose()


async def put_until_let_in(store: EtcdStore, key: str) -> None:
    async with asyncio.timeout(WITHIN_S):
        while True:
            with contextlib.suppress(StoreError):
                await store.txn(then=[Put(key, b"x")])
                return
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("file_first", [True, False])
async def test_a_password_is_exchanged(
    server: EtcdServer, tmp_path: Path, *, file_first: bool
) -> None:
    """In its file and in etcd, in either order: etcd forgets the tokens of the former one."""
    enable_authentication(server.endpoint)
    file = tmp_path / "password"
    file.write_text("sesame\n")
    user = {"metadata_store_username": "root", "metadata_store_password_file": str(file)}
    async with opened(f"etcd://{server.endpoint}", **user) as store:
        watch = store.watch("")
        await write(store, "a")
        if file_first:
            file.write_text("another\n")
        change_password(server.endpoint, "sesame", "another")
        if not file_first:
            with pytest.raises(StoreDeniedError, match="invalid user ID or password"):
                await store.txn(then=[Put("refused", b"x")])
            file.write_text("another\n")
        await put_until_let_in(store, "b")
        assert await follow(watch, "b") == ["a", "b"]


async def test_certificates_are_exchanged(tmp_path: Path) -> None:
    """The authority's too: connections are made with what the files hold then."""
    paths = {name: tmp_path / name for name in ("server.key", "server.pem")}
    make_certificate(tmp_path)
    files = ("--cert-file", str(paths["server.pem"]), "--key-file", str(paths["server.key"]))
    clients = ("--client-cert-auth", "--trusted-ca-file", str(paths["server.pem"]))
    server = EtcdServer(etcd_or_skip(), tmp_path, *files, *clients, scheme="https")
    server.start()
    for path in paths.values():
        shutil.copy(path, tmp_path / f"own-{path.name}")
    own = {name: tmp_path / f"own-{name}" for name in paths}
    settings = {
        "metadata_store_tls_ca_file": str(own["server.pem"]),
        "metadata_store_tls_key_file": str(own["server.key"]),
        "metadata_store_tls_certificate_file": str(own["server.pem"]),
    }
    try:
        async with opened(f"etcds://{server.endpoint}", **settings) as store:
            watch = store.watch("")
            await write(store, "a")
            server.kill()
            make_certificate(tmp_path)
            server.start()
            with pytest.raises(StoreUnavailableError, match="CERTIFICATE_VERIFY_FAILED"):
                await unreached(store)
            # A key alone is no pair yet: what there was stays.
            shutil.copy(paths["server.key"], own["server.key"])
            with pytest.raises(StoreUnavailableError):
                await store.get("a")
            shutil.copy(paths["server.pem"], own["server.pem"])
            await put_until_let_in(store, "b")
            assert await follow(watch, "b") == ["a", "b"]
    finally:
        server.kill()


async def unreached(store: EtcdStore) -> None:
    """Ask until it is the certificate that is named, and not a server that is starting."""
    async with asyncio.timeout(WITHIN_S):
        while True:
            try:
                await store.get("a")
            except StoreUnavailableError as error:
                if "refused" not in str(error).lower() and str(error).count(":") > 1:
                    raise
