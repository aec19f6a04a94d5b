"""A bucket named on the command line."""

import argparse
from pathlib import Path

import pytest

from cli.connection import CommandError
from cli.tier.tier_bucket import (
    add_bucket_arguments,
    bucket_settings,
    names_a_bucket,
    with_bucket,
)
from tiered.tier import Tier


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_bucket_arguments(parser)
    return parser.parse_args(words)


def test_short_options_are_settings() -> None:
    """Remote storage is on, whatever the file says."""
    options = ("--bucket", "b", "--endpoint", "http://h:1", "--prefix", "p/", "--region", "r")
    settings = bucket_settings(parsed(*options))
    assert settings.remote_log_storage_system_enable
    assert settings.rsm_config_storage_backend_class == "s3"
    assert settings.rsm_config_storage_s3_bucket_name == "b"
    assert settings.rsm_config_storage_s3_endpoint_url == "http://h:1"
    assert settings.rsm_config_storage_s3_region == "r"
    assert settings.rsm_config_key_prefix == "p/"
    assert bucket_settings(parsed("--root", "/r")).rsm_config_storage_root == "/r"


def test_it_can_be_told_whether_a_bucket_is_meant() -> None:
    """Else a command asks a broker."""
    assert not names_a_bucket(parsed())
    for words in (["--root", "r"], ["--bucket", "b"], ["--config", "f"], ["--set", "a=b"]):
        assert names_a_bucket(parsed(*words))


def test_mistakes_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    """All of them; then one line."""
    with pytest.raises(CommandError, match="are invalid") as caught:
        bucket_settings(parsed("--bucket", "b", "--endpoint", "h"))
    assert caught.value.status == 2
    assert "is no URL" in capsys.readouterr().err


def test_the_bucket_is_opened_and_closed(tmp_path: Path) -> None:
    """And nothing else of the directory is touched."""

    async def put(tier: Tier) -> bytes:
        await tier.put_object("a", b"1")
        return await tier.get_object("a")

    settings = bucket_settings(parsed("--root", str(tmp_path), "--prefix", "p/"))
    assert with_bucket(settings, put) == b"1"
    assert (tmp_path / "p" / "a").read_bytes() == b"1"


def test_a_directory_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    """A mistyped one, or one whose disk is not mounted, is no bucket without segments."""

    async def read(tier: Tier) -> bytes:
        return await tier.get_object("a")

    root = tmp_path / "typo"
    with pytest.raises(CommandError, match=f"object store: there is no directory {root}"):
        with_bucket(bucket_settings(parsed("--root", str(root))), read)
    assert not root.exists()


def test_a_store_that_refuses_is_one_line(tmp_path: Path) -> None:
    """With its reason."""

    async def get(tier: Tier) -> bytes:
        return await tier.get_object("none")

    settings = bucket_settings(parsed("--root", str(tmp_path)))
    with pytest.raises(CommandError, match="object store: no such object: none"):
        with_bucket(settings, get)
