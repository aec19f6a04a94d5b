"""A store with its directory: one process, its owner alone, never anew in place of a lost one."""

import asyncio
import stat
from pathlib import Path

import pytest

from broker.controller.store.metadata_store import Put, StoreUnavailableError
from broker.controller.store.unix.store_host import (
    IDENTITY_FILE,
    SOCKET_FILE,
    STORE_FILE,
    StoreHost,
    StoreHostError,
)
from broker.controller.store.unix.unix_store import UnixStore
from storage.environment.environment import Environment
from storage.environment.local_filesystem import LocalFilesystem
from storage.environment.randomness import SeededRandomness
from tests.fakes.timer import ManualTimer


def environment_of(timer: ManualTimer, seed: int = 1) -> Environment:
    return Environment(
        clock=timer.clock,
        timer=timer,
        filesystem=LocalFilesystem(),
        randomness=SeededRandomness(seed),
        run_blocking=asyncio.to_thread,
    )


@pytest.fixture
def environment() -> Environment:
    return environment_of(ManualTimer())


async def write(host: StoreHost, key: str) -> int:
    store = await UnixStore.open(host.address.removeprefix("unix:"))
    revision = (await store.txn(then=[Put(key, b"x")])).revision
    await store.aclose()
    return revision


async def test_files_are_their_owners_alone(tmp_path: Path, environment: Environment) -> None:
    directory = tmp_path / "new" / "store"
    host = await StoreHost.open(str(directory), environment)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert stat.S_IMODE((directory / SOCKET_FILE).stat().st_mode) == 0o600
    assert host.address == f"unix:{directory}/{SOCKET_FILE}"
    await host.aclose()
    await host.aclose()
    assert not (directory / SOCKET_FILE).exists()


async def test_one_process_serves_a_directory(tmp_path: Path, environment: Environment) -> None:
    """The second one ends with a sentence; the first one's socket stays."""
    host = await StoreHost.open(str(tmp_path / "store"), environment)
    with pytest.raises(StoreHostError, match="served by another process already"):
        await StoreHost.open(str(tmp_path / "store"), environment)
    assert await write(host, "a") == 2
    await host.aclose()
    again = await StoreHost.open(str(tmp_path / "store"), environment)
    assert again.revision == 2
    assert await write(again, "b") == 3
    await again.aclose()


async def test_a_directory_that_others_may_enter_is_refused(
    tmp_path: Path, environment: Environment
) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store").chmod(0o755)
    with pytest.raises(StoreHostError, match="chmod 700"):
        await StoreHost.open(str(tmp_path / "store"), environment)
    assert list((tmp_path / "store").iterdir()) == []


async def test_a_socket_elsewhere(tmp_path: Path, environment: Environment) -> None:
    host = await StoreHost.open(
        str(tmp_path / "store"), environment, socket=str(tmp_path / "run" / "s")
    )
    assert host.address == f"unix:{tmp_path}/run/s"
    assert await write(host, "a") == 2
    await host.aclose()


async def test_a_lost_store_is_not_begun_anew(tmp_path: Path, environment: Environment) -> None:
    """Brokers may hold logs of it: leader epochs would repeat."""
    directory = tmp_path / "store"
    host = await StoreHost.open(str(directory), environment)
    await write(host, "a")
    await host.aclose()
    (directory / STORE_FILE).rename(tmp_path / "lost")
    for _ in range(2):
        with pytest.raises(StoreHostError, match="give it back from a copy"):
            await StoreHost.open(str(directory), environment)
    assert not (directory / STORE_FILE).exists()
    (tmp_path / "lost").rename(directory / STORE_FILE)
    again = await StoreHost.open(str(directory), environment)
    assert again.revision == 2
    await again.aclose()


async def test_another_stores_file_is_refused(tmp_path: Path) -> None:
    for number, name in enumerate(("one", "two")):
        host = await StoreHost.open(str(tmp_path / name), environment_of(ManualTimer(), number))
        await host.aclose()
    (tmp_path / "two" / STORE_FILE).replace(tmp_path / "one" / STORE_FILE)
    with pytest.raises(StoreHostError, match="another store's file"):
        await StoreHost.open(str(tmp_path / "one"), environment_of(ManualTimer()))


@pytest.mark.parametrize("content", ["", "not a number\n"])
async def test_an_identity_that_cannot_be_read_is_refused(
    tmp_path: Path, environment: Environment, content: str
) -> None:
    host = await StoreHost.open(str(tmp_path / "store"), environment)
    await host.aclose()
    (tmp_path / "store" / IDENTITY_FILE).write_text(content)
    with pytest.raises(StoreHostError, match="cannot be read"):
        await StoreHost.open(str(tmp_path / "store"), environment)


async def test_a_start_that_was_broken_off_before_the_identity_goes_on(
    tmp_path: Path, environment: Environment
) -> None:
    """Killed between the two files: the store's own identity counts."""
    directory = tmp_path / "store"
    host = await StoreHost.open(str(directory), environment)
    await host.aclose()
    named = (directory / IDENTITY_FILE).read_text()
    (directory / IDENTITY_FILE).unlink()
    again = await StoreHost.open(str(directory), environment_of(ManualTimer(), seed=2))
    await again.aclose()
    assert (directory / IDENTITY_FILE).read_text() == named


async def test_leases_are_kept_and_get_their_time_again(tmp_path: Path) -> None:
    """Nobody is fenced because the process that serves was restarted."""
    timer = ManualTimer()
    host = await StoreHost.open(str(tmp_path / "store"), environment_of(timer))
    store = await UnixStore.open(host.address.removeprefix("unix:"))
    lease = await store.grant_lease(1_000)
    timer.advance(900)
    await host.aclose()
    host = await StoreHost.open(str(tmp_path / "store"), environment_of(timer))
    timer.advance(900)
    assert host.leases == 1
    for _ in range(500):
        try:
            assert await store.keep_lease_alive(lease) == 1_000
            break
        except StoreUnavailableError:
            await asyncio.sleep(0.01)
    timer.advance(900)
    assert await store.keep_lease_alive(lease) == 1_000
    await store.aclose()
    await host.aclose()
