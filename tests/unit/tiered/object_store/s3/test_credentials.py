"""Credentials from the settings and from a file that is rotated."""

import errno
import logging

import pytest

from tests.fakes.clock import ManualClock
from tests.fakes.filesystem import FakeFilesystem
from tiered.errors import StoreDeniedError
from tiered.object_store.s3.credentials import (
    LOOK_INTERVAL_MS,
    Credentials,
    CredentialsFile,
    FixedCredentials,
    parse_credentials,
)

PATH = "/etc/credentials"


def text(key: str, secret: str = "secret", extra: str = "", profile: str = "default") -> bytes:
    return (
        f"# a comment\n[{profile}]\naws_access_key_id = {key}\n"
        f"aws_secret_access_key={secret}\n{extra}"
    ).encode()


class World:
    def __init__(self, data: bytes | None = None, profile: str = "default") -> None:
        self.clock = ManualClock()
        self.disk = FakeFilesystem(self.clock)
        self.disk.mkdir("/etc")
        if data is not None:
            self.write(data)
        self.source = CredentialsFile(self.disk, PATH, profile, self.clock)

    def write(self, data: bytes) -> None:
        self.disk.replace_bytes(PATH, data)

    def pass_time(self) -> None:
        self.clock.advance(LOOK_INTERVAL_MS)


async def test_fixed_credentials_stay() -> None:
    source = FixedCredentials("key", "secret")
    assert await source.current() == Credentials("key", "secret", None)
    assert not source.refused(0)


async def test_the_file_is_read_again_when_it_changes() -> None:
    world = World(text("one"))
    assert await world.source.current() == Credentials("one", "secret")
    world.pass_time()
    world.write(text("two", "new", "aws_session_token = t/o=\n"))
    assert await world.source.current() == Credentials("two", "new", "t/o=")


async def test_the_file_is_not_read_while_it_stays_the_same() -> None:
    world = World(text("one"))
    await world.source.current()
    world.disk.fail("read", errno.EIO)
    world.pass_time()
    assert (await world.source.current()).access_key_id == "one"


async def test_the_file_is_looked_at_once_a_second_at_most() -> None:
    world = World(text("one"))
    await world.source.current()
    world.clock.advance(LOOK_INTERVAL_MS - 1)
    world.write(text("two"))
    assert (await world.source.current()).access_key_id == "one"
    world.clock.advance(1)
    assert (await world.source.current()).access_key_id == "two"


@pytest.mark.parametrize("half", [b"", b"[default]\n", b"aws_access_key_id=x", b"\xff\xfe"])
async def test_a_file_in_the_middle_of_a_rotation_changes_nothing(
    half: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(text("one"))
    await world.source.current()
    world.pass_time()
    world.write(half)
    for _ in range(3):
        world.pass_time()
        assert (await world.source.current()).access_key_id == "one"
    world.disk.remove(PATH)
    world.pass_time()
    assert (await world.source.current()).access_key_id == "one"
    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    # One for what it holds, one for being gone: not one a second.
    assert len(warnings) == 2
    world.write(text("two"))
    world.pass_time()
    assert (await world.source.current()).access_key_id == "two"


async def test_without_any_credentials_the_call_is_refused_here() -> None:
    world = World()
    with pytest.raises(StoreDeniedError, match=PATH):
        await world.source.current()
    world.write(text("one", profile="other"))
    world.pass_time()
    with pytest.raises(StoreDeniedError, match="default is missing"):
        await world.source.current()


async def test_a_refusal_looks_at_the_file_at_once() -> None:
    """Also where its time of modification tells nothing."""
    world = World(text("one"))
    await world.source.current()
    first = world.source.changes
    assert not world.source.refused(first)
    world.write(text("two"))
    assert world.source.refused(first)
    assert (await world.source.current()).access_key_id == "two"
    assert not world.source.refused(world.source.changes)
    # Another request that was signed before, and refused after.
    assert world.source.refused(first)


@pytest.mark.parametrize(
    "data",
    [
        "",
        "[default]",
        "[default]\naws_access_key_id=a",
        "[default]\naws_secret_access_key=topsecret",
        "[default]\naws_access_key_id=\naws_secret_access_key=topsecret",
        "[other]\naws_access_key_id=a\naws_secret_access_key=topsecret",
        "topsecret",
        "[default\naws_secret_access_key=topsecret",
        "[default]\ntopsecret",
    ],
)
def test_what_is_no_credentials_file_is_told_without_its_secrets(data: str) -> None:
    with pytest.raises(ValueError, match=r"missing|empty|no credentials file") as caught:
        parse_credentials(data, "default")
    assert "topsecret" not in str(caught.value)


def test_secrets_may_have_any_characters() -> None:
    data = "[p]\naws_access_key_id=a\naws_secret_access_key=x%y;z#=/+\n"
    assert parse_credentials(data, "p").secret_access_key == "x%y;z#=/+"


def test_secrets_stay_out_of_texts() -> None:
    credentials = Credentials("key", "topsecret", "toptoken")
    assert repr(credentials) == "Credentials('key')"
