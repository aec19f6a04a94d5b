"""A cache of remote storage has a directory to itself: what lies there may be removed."""

import os
from pathlib import Path

import pytest

from config.broker import BrokerConfig
from config.broker_rules import conflicts

PATHS = ("tier_index_cache_path", "rsm_config_fetch_chunk_cache_path")
KEYS = ("tier.index.cache.path", "rsm.config.fetch.chunk.cache.path")
PAIRS = list(zip(PATHS, KEYS, strict=True))


def problems(tmp: Path, **values: object) -> dict[str, str]:
    given: dict[str, object] = {
        "log_dirs": (str(tmp / "a"), str(tmp / "deep/b")),
        "rsm_config_storage_root": str(tmp / "store"),
        "remote_log_storage_system_enable": True,
        **values,
    }
    broker = BrokerConfig().replace(**given)
    return {one.key: one.problem for one in conflicts(broker)}


def test_the_default_places_are_in_the_first_log_directory(tmp_path: Path) -> None:
    assert problems(tmp_path) == {}
    assert problems(tmp_path, rsm_config_storage_root=None) == {}
    spelled = {
        "tier_index_cache_path": str(tmp_path / "deep/b/remote-log-index-cache/"),
        "rsm_config_fetch_chunk_cache_path": str(tmp_path / "a/varve-chunk-cache"),
    }
    assert problems(tmp_path, **spelled) == {}


@pytest.mark.parametrize(("name", "key"), PAIRS)
def test_a_place_of_its_own_is_accepted(tmp_path: Path, name: str, key: str) -> None:
    for path in ("cache", "a-cache", "deep/cache", "store2"):
        assert problems(tmp_path, **{name: str(tmp_path / path)}) == {}


@pytest.mark.parametrize(("name", "key"), PAIRS)
@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("a", "is or holds the log directory"),
        ("a/", "is or holds the log directory"),
        ("x/../a//", "is or holds the log directory"),
        ("deep", "is or holds the log directory"),
        ("", "is or holds the log directory"),
        ("a/t-0", "lies in the log directory"),
        ("deep/b/cache", "lies in the log directory"),
        ("a/remote-log-index-cache/varve-chunk-cache", "lies in the log directory"),
        ("store", "is or holds the object store's root"),
        ("store/cache", "lies in the object store's root"),
    ],
)
def test_what_holds_data_is_refused(
    tmp_path: Path, name: str, key: str, path: str, says: str
) -> None:
    found = problems(tmp_path, **{name: f"{tmp_path}/{path}"})
    assert says in found[key]


@pytest.mark.parametrize(("name", "key"), PAIRS)
def test_links_and_relative_paths_are_seen_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, key: str
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "innocent").symlink_to(tmp_path / "a")
    assert "log directory" in problems(tmp_path, **{name: str(tmp_path / "innocent")})[key]
    assert "log directory" in problems(tmp_path, **{name: str(tmp_path / "innocent/t-0")})[key]
    monkeypatch.chdir(tmp_path)
    assert "log directory" in problems(tmp_path, **{name: "a"})[key]
    assert "log directory" in problems(tmp_path, **{name: "."})[key]
    # The log directory itself may be the link.
    os.rename(tmp_path / "a", tmp_path / "disk")
    (tmp_path / "a").symlink_to(tmp_path / "disk")
    assert "log directory" in problems(tmp_path, **{name: str(tmp_path / "disk")})[key]


def test_the_caches_do_not_share(tmp_path: Path) -> None:
    path = str(tmp_path / "cache")
    assert problems(tmp_path, **dict.fromkeys(PATHS, path)).keys() == set(KEYS)
    chunk_default = str(tmp_path / "a/varve-chunk-cache")
    assert "tier.index.cache.path" in problems(tmp_path, tier_index_cache_path=chunk_default)
    inner = {"tier_index_cache_path": path, "rsm_config_fetch_chunk_cache_path": path + "/c"}
    assert problems(tmp_path, **inner).keys() == set(KEYS)


def test_the_store_is_not_put_into_a_cache(tmp_path: Path) -> None:
    root = str(tmp_path / "a/remote-log-index-cache/objects")
    assert (
        "object store's root"
        in problems(tmp_path, rsm_config_storage_root=root)["rsm.config.storage.root"]
    )


def test_a_bucket_has_no_directory(tmp_path: Path) -> None:
    found = problems(
        tmp_path,
        rsm_config_storage_backend_class="s3",
        rsm_config_storage_s3_bucket_name="b",
        tier_index_cache_path=str(tmp_path / "store"),
    )
    assert found == {}


def test_without_remote_storage_nothing_is_said(tmp_path: Path) -> None:
    off: dict[str, object] = {"remote_log_storage_system_enable": False}
    assert problems(tmp_path, tier_index_cache_path=str(tmp_path / "a"), **off) == {}
