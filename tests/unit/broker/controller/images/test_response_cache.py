"""Encoded responses are kept for one image, within bounds."""

import pytest

from broker.controller.images import response_cache
from broker.controller.images.cluster_image import ClusterImage
from broker.controller.images.response_cache import ResponseCache


def test_response_is_kept_for_its_image_only() -> None:
    cache = ResponseCache()
    old, new = ClusterImage.empty(), ClusterImage.empty()
    cache.put(old, ("k",), b"old")
    assert cache.get(old, ("k",)) == b"old"
    assert cache.get(old, ("other",)) is None
    assert cache.get(new, ("k",)) is None
    cache.put(new, ("k",), b"newer")
    assert cache.get(old, ("k",)) is None
    assert (len(cache), cache.size, cache.hits, cache.misses) == (1, 5, 1, 3)


def test_number_and_size_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest goes first; what is too large is not kept at all."""
    monkeypatch.setattr(response_cache, "ENTRIES_MAX", 2)
    monkeypatch.setattr(response_cache, "BYTES_MAX", 10)
    cache, image = ResponseCache(), ClusterImage.empty()
    for key in ("a", "b", "c"):
        cache.put(image, (key,), b"xx")
    assert [cache.get(image, (key,)) for key in ("a", "b", "c")] == [None, b"xx", b"xx"]
    cache.put(image, ("d",), b"x" * 9)
    assert cache.get(image, ("b",)) is None
    assert cache.size <= 10
    cache.put(image, ("e",), b"x" * 11)
    assert cache.get(image, ("e",)) is None
    cache.put(image, ("d",), b"x")
    assert cache.size == 1
