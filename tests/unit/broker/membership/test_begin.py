"""What a broker says of itself when it registers."""

from dataclasses import replace
from uuid import UUID

import pytest

from broker.controller.images.broker_records import BrokerRegistration, LastRun, live_key
from broker.controller.images.features import SUPPORTED
from broker.membership.begin import begin_membership, sync_all
from broker.membership.last_run import BOOT_ID_FILE
from broker.membership.registration import Registrar
from config.broker import BrokerConfig
from config.topic import TopicConfig
from config.version import VERSION
from storage.checkpoints.member_note import MemberNote, write_member_note
from storage.manager.log_manager import LogManager
from tests.fakes.broker.metadata_store import MemoryStore
from tests.fakes.environment import FakeEnvironment


async def test_it_says_what_the_settings_and_directories_say_and_ends_its_past_life() -> None:
    environment = FakeEnvironment()
    manager = LogManager(environment, ["/a", "/b"])
    manager.startup.open_directories()
    manager.startup.claim("cluster", 1)
    ids = tuple(directory.id for directory in manager.directories if directory.id is not None)
    store = MemoryStore(environment.timer)
    past = BrokerRegistration(UUID(int=9), {}, directories=ids[1:])
    registrar = Registrar(
        store, 1, clock=environment.clock, timer=environment.timer, session_ms=3_000
    )
    epoch = await registrar.register(past, await store.grant_lease(60_000))
    environment.filesystem.mkdir("/proc/sys/kernel/random")
    environment.filesystem.replace_bytes(BOOT_ID_FILE, b"boot\n")
    write_member_note(environment.filesystem, "/b", MemberNote("boot", epoch, epoch, failed=True))
    membership = await begin_membership(
        store,
        BrokerConfig().replace(broker_rack="r"),
        manager,
        environment=environment,
        fail=lambda _: None,
    )
    said = membership.registration
    assert len(ids) == 2
    assert said == replace(
        past,
        incarnation=said.incarnation,
        rack="r",
        features=SUPPORTED,
        directories=ids,
        release=VERSION,
    )
    assert await store.get(live_key(1)) is None


@pytest.mark.parametrize("directories", [["/a", "/b"], ["/a"]])
async def test_a_clean_end_counts_where_all_directories_of_that_life_are_here(
    directories: list[str],
) -> None:
    """What lay in one that is gone may be lost."""
    environment = FakeEnvironment()
    manager = LogManager(environment, ["/a", "/b"])
    manager.startup.open_directories()
    manager.startup.claim("cluster", 1)
    store = MemoryStore(environment.timer)
    first = await begin_membership(
        store, BrokerConfig(), manager, environment=environment, fail=lambda _: None
    )
    assert first.registration.ended is LastRun.UNKNOWN
    manager.startup.load_jobs(lambda _: TopicConfig())
    await first.join(no_sync)
    await first.leave()
    manager.shutdown(broker_epoch=first.broker_epoch)
    again = LogManager(environment, directories)
    again.startup.open_directories()
    second = await begin_membership(
        store, BrokerConfig(), again, environment=environment, fail=lambda _: None
    )
    expected = LastRun.CLEAN if len(directories) == 2 else LastRun.UNKNOWN
    assert second.registration.ended is expected


async def no_sync() -> bool:
    raise AssertionError("nothing was left unsynced")


def test_what_was_left_unsynced_is_synced_or_its_directory_fails() -> None:
    environment = FakeEnvironment()
    manager = LogManager(environment, ["/a"])
    assert sync_all(manager)
