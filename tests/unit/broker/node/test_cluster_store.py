"""Opening the metadata store of a cluster: waited for, or refused with a sentence."""

import asyncio
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from bench.node import free_ports
from broker.controller.store.store_thread import THREAD_NAME
from broker.controller.store.until_answered import TRY_AGAIN_MS
from broker.node.cluster_store import access_of, open_cluster_store
from broker.runtime.startup_errors import StartupError
from config.broker import BrokerConfig
from config.store_address import StoreAddressKind
from storage.environment.local_filesystem import LocalFilesystem
from tests.fakes.environment import FakeEnvironment
from tests.harness.certificates import make_certificate


def settings_of(address: str, **values: object) -> BrokerConfig:
    store = StoreAddressKind().parse("metadata.store", address)
    return BrokerConfig().replace(metadata_store=store, **values)


def test_user_and_certificates_are_read_from_their_files(tmp_path: Path) -> None:
    (tmp_path / "password").write_bytes(b"secret \r\nanother line")
    key, certificate = make_certificate(tmp_path)
    access = access_of(
        settings_of(
            "etcds://one,two:1",
            metadata_store_username="u",
            metadata_store_password_file=str(tmp_path / "password"),
            metadata_store_tls_ca_file=str(certificate),
            metadata_store_tls_key_file=str(key),
            metadata_store_tls_certificate_file=str(certificate),
        ),
        LocalFilesystem(),
    )
    assert access.endpoints == ("one:2379", "two:1")
    assert (access.username, access.password) == ("u", "secret ")
    assert access.tls is not None
    assert (access.tls.authority, access.tls.key) == (certificate.read_bytes(), key.read_bytes())
    assert access.tls.certificate == certificate.read_bytes()
    assert "secret" not in repr(access)
    assert access_of(settings_of("etcd://one"), LocalFilesystem()).tls is None


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    settings = settings_of("etcds://one", metadata_store_tls_ca_file=str(tmp_path / "no"))
    with pytest.raises(StartupError, match=r"metadata\.store\.tls\.ca\.file: .*no"):
        access_of(settings, LocalFilesystem())


def test_a_password_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "password").write_bytes("päss".encode("latin-1"))
    settings = settings_of(
        "etcd://one",
        metadata_store_username="u",
        metadata_store_password_file=str(tmp_path / "password"),
    )
    with pytest.raises(StartupError, match=r"metadata\.store\.password\.file: .* is not UTF-8"):
        access_of(settings, LocalFilesystem())


async def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "broker.controller.store.etcd.etcd_store", None)
    with pytest.raises(StartupError, match=r"pip install 'varve\[cluster\]'"):
        await open_cluster_store(
            settings_of("etcd://h"),
            FakeEnvironment(),
            waiting=lambda _: None,
        )


def store_threads() -> int:
    """Threads of stores: those of gRPC itself come and go at any time."""
    return sum(thread.name == THREAD_NAME for thread in threading.enumerate())


async def test_servers_that_do_not_answer_are_waited_for_with_a_reason() -> None:
    environment = FakeEnvironment()
    before = store_threads()
    address = f"127.0.0.1:{free_ports(1)[0]}"
    waited: asyncio.Queue[str] = asyncio.Queue()
    opening = asyncio.ensure_future(
        open_cluster_store(
            settings_of(f"etcd://{address}"),
            environment,
            waiting=waited.put_nowait,
        )
    )
    assert (await asyncio.wait_for(waited.get(), 30)).startswith("connecting to the metadata")
    for _ in range(2):
        reason = await asyncio.wait_for(waited.get(), 30)
        assert reason.startswith(f"waiting for the metadata store etcd://{address}: ")
        await asyncio.sleep(0)
        assert environment.timer.pending == 1
        assert not opening.done()
        environment.timer.advance(TRY_AGAIN_MS)
    opening.cancel()
    await asyncio.wait([opening])
    assert store_threads() <= before + 1, "each attempt has a thread of its own"


async def test_a_socket_that_nobody_serves_is_waited_for_with_a_reason(tmp_path: Path) -> None:
    environment = FakeEnvironment()
    waited: asyncio.Queue[str] = asyncio.Queue()
    opening = asyncio.ensure_future(
        open_cluster_store(
            settings_of(f"unix:{tmp_path}/s"), environment, waiting=waited.put_nowait
        )
    )
    assert (await asyncio.wait_for(waited.get(), 30)).startswith("connecting to the metadata")
    reason = await asyncio.wait_for(waited.get(), 30)
    assert reason.startswith(f"waiting for the metadata store unix:{tmp_path}/s: ")
    assert "No such file" in reason
    assert not opening.done()
    opening.cancel()
    await asyncio.wait([opening])


@pytest.mark.parametrize(
    ("store", "unwanted"),
    [("etcd.etcd_store", set()), ("unix.unix_store", {"grpc", "google.protobuf"})],
)
def test_a_member_of_a_cluster_imports_neither_sqlite_nor_codecs(
    store: str, unwanted: set[str]
) -> None:
    """Those are 3 MB of its memory; the first compressed batch brings its codec."""
    unwanted = unwanted | {"sqlite3", "cramjam", "lz4"}
    code = (
        f"import sys, broker.app, broker.broker, broker.controller.store.{store}\n"
        f"print(*{unwanted} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.split() == []
