"""Where a bucket is, what is wrong with what was asked for, and that no secret is ever shown."""

import pickle
from pathlib import Path

import pytest

from config.tier import TierConfig
from pipeline.plan.bucket import (
    BucketOptions,
    Location,
    open_bucket,
    option_mistakes,
    parse_location,
    store_settings,
)
from pipeline.plan.errors import OptionsError, PlanError
from storage.environment.local_filesystem import LocalFilesystem
from storage.environment.randomness import SeededRandomness
from tests.unit.tiered.format.key_files import write_pair
from tiered.errors import RemoteStorageError
from tiered.format.key_ring import KeyRing


@pytest.mark.parametrize(
    ("text", "location"),
    [
        ("s3://bucket", Location("s3", "bucket", "", "")),
        ("s3://bucket/", Location("s3", "bucket", "", "")),
        ("s3://my.bucket-1/a/b", Location("s3", "my.bucket-1", "", "a/b/")),
        ("s3a://bucket/a/", Location("s3", "bucket", "", "a/")),
        ("S3://bucket/Ä b", Location("s3", "bucket", "", "Ä b/")),
        ("file:///a/b", Location("filesystem", "", "/a/b", "")),
        ("file:/a/b", Location("filesystem", "", "/a/b", "")),
        ("/a/b c/", Location("filesystem", "", "/a/b c/", "")),
    ],
)
def test_a_location_names_a_store(text: str, location: Location) -> None:
    assert parse_location(text) == location


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "neither s3://bucket/prefix nor file:///dir"),
        ("bucket/prefix", "neither s3://bucket/prefix nor file:///dir"),
        ("hdfs://host/a", "neither s3:// nor file://"),
        ("s3://", "no usable name of a bucket"),
        ("s3:///a", "no usable name of a bucket"),
        ("s3://b/a", "no usable name of a bucket"),
        ("s3://bucket/a//b", "an empty part"),
        ("s3://bucket/a/../b", "an empty part, `.` or `..`"),
        ("file://host/a", "has a host"),
    ],
)
def test_what_names_none_is_told(text: str, problem: str) -> None:
    with pytest.raises(OptionsError, match=problem):
        parse_location(text)


def test_all_mistakes_are_told_at_once() -> None:
    """Whoever mends one must not meet the next one by another try."""
    options = BucketOptions(
        "s3://b/..",
        endpoint="localhost:9000",
        access_key_id="AKIA",
        credentials_file="/c",
        key_pairs=(("", "/a"), ("k", ""), ("k", "/b")),
    )
    mistakes = option_mistakes(options)
    for part in (
        "no usable name of a bucket",
        "`.` or `..`",
        "belong together",
        "contradicts store.credentialsFile",
        "no http:// or https:// address",
        "'' is no id",
        "'k' comes twice",
        "'k' has no file",
    ):
        assert sum(part in mistake for mistake in mistakes) == 1, part
    assert len(mistakes) == 8


def test_what_means_nothing_for_a_directory_is_refused() -> None:
    mistakes = option_mistakes(BucketOptions("/d", region="eu", path_style=True))
    assert mistakes == ["store.region, store.pathStyle: of no meaning for a directory"]
    assert option_mistakes(BucketOptions("/d", profile="p")) == [
        "store.profile needs store.credentialsFile, which has it"
    ]


@pytest.mark.parametrize("location", ["s3://AKIA:hush@bucket/a", "https://AKIA:hush@host/b"])
def test_secrets_are_in_no_text(location: str) -> None:
    """Nor those that somebody left in a URL."""
    options = BucketOptions(
        location, "https://AKIA:hush@host", access_key_id="AKIA", secret_access_key="hush"
    )
    with pytest.raises(OptionsError) as told:
        parse_location(location)
    for text in (repr(options), str(options), f"{options}", str(told.value), repr(told.value)):
        assert "hush" not in text
        assert "AKIA" not in text
    settings = store_settings(options._replace(location="s3://bucket", endpoint=""))
    assert "hush" not in repr(settings)
    assert not any("hush" in mistake for mistake in option_mistakes(options))
    assert pickle.loads(pickle.dumps(options)) == options


def test_options_are_the_stores_settings() -> None:
    settings = store_settings(
        BucketOptions("s3://bucket/a", "http://h:1", "eu", True, "/c", "p", call_timeout_ms=7)
    )
    assert (settings.backend, settings.bucket, settings.key_prefix) == ("s3", "bucket", "a/")
    assert (settings.endpoint_url, settings.region, settings.path_style) == (
        "http://h:1",
        "eu",
        True,
    )
    assert (settings.credentials_file, settings.credentials_profile) == ("/c", "p")
    assert settings.call_timeout_ms == 7
    assert store_settings(BucketOptions("s3://bucket/a", key_prefix="t-")).key_prefix == "t-"
    assert store_settings(BucketOptions("/d")).credentials_profile == "default"


async def test_a_directory_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    """A slip of the pen is told, and leaves nothing behind."""
    with pytest.raises(PlanError, match=r"no directory .*/missing"):
        await open_bucket(BucketOptions(f"file://{tmp_path}/missing"))
    assert LocalFilesystem().list_directory(f"{tmp_path}") == []
    with pytest.raises(OptionsError):
        await open_bucket(BucketOptions("missing"))


async def test_what_a_pair_has_wrapped_is_unwrapped_by_its_private_half(tmp_path: Path) -> None:
    files = write_pair(tmp_path, "first")
    randomness = SeededRandomness(1)
    writer = KeyRing.load(
        TierConfig(
            rsm_config_encryption_enabled=True,
            rsm_config_encryption_key_pair_id="k1",
            rsm_config_encryption_key_pairs_files={"k1": files},
        ),
        LocalFilesystem(),
        randomness,
    )
    data_key, envelope = writer.new_data_key()
    options = BucketOptions(f"{tmp_path}", key_pairs=(("k1", f"{files.private}"),))
    async with await open_bucket(options) as bucket:
        assert bucket.key_ring.unwrap(envelope) == data_key
    async with await open_bucket(BucketOptions(f"{tmp_path}")) as bucket:
        with pytest.raises(RemoteStorageError, match="needs the key pair 'k1'"):
            bucket.key_ring.unwrap(envelope)


async def test_a_key_file_that_cannot_be_used_is_named_and_not_quoted(tmp_path: Path) -> None:
    public = write_pair(tmp_path, "first").public
    (tmp_path / "bad.pem").write_bytes(b"-----BEGIN PRIVATE KEY-----\nhush\n")
    for path, problem in (
        (public, "is not an unencrypted private key"),
        (f"{tmp_path}/bad.pem", "is not an unencrypted private key"),
        (f"{tmp_path}/none.pem", "cannot be read"),
    ):
        with pytest.raises(PlanError, match=problem) as told:
            await open_bucket(BucketOptions(f"{tmp_path}", key_pairs=(("k1", path),)))
        assert "'k1'" in str(told.value)
        assert path in str(told.value)
        assert "hush" not in str(told.value)
