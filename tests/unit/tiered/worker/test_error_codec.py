"""Errors arrive as they left."""

import json

import pytest

from storage.errors import DiskError
from tiered import errors
from tiered.worker.error_codec import TEXT_MAX, error_as_json, error_from_json, is_expected


def family(kind: type[Exception]) -> list[type[Exception]]:
    return [kind, *(deeper for child in kind.__subclasses__() for deeper in family(child))]


def example(kind: type[Exception]) -> Exception:
    """An error of that type, made as its users make it."""
    if kind is errors.ObjectNotFoundError:
        return errors.ObjectNotFoundError("a/b é")
    if kind is errors.CorruptRemoteDataError:
        return errors.CorruptRemoteDataError("a/b", 7, "crc")
    if kind is errors.CorruptSegmentError:
        return errors.CorruptSegmentError("/a", -1, "order", rebuildable=True)
    if kind is errors.RemoteOffsetNotFoundError:
        return errors.RemoteOffsetNotFoundError("t-1", None, 99)
    return kind("words")


OURS = [kind for kind in family(errors.TieredError) if kind.__module__ == errors.__name__]


@pytest.mark.parametrize("kind", OURS, ids=lambda kind: kind.__name__)
def test_type_text_and_attributes_cross(kind: type[Exception]) -> None:
    """Every type of `tiered.errors`; a new one with attributes fails here until it is known."""
    error = example(kind)
    there = error_from_json(json.loads(json.dumps(error_as_json(error))))
    assert type(there) is kind
    assert str(there) == str(error)
    assert vars(there) == vars(error)
    assert is_expected(error)


def test_disk_error_crosses() -> None:
    error = DiskError("cannot write", "/cache/1", 28)
    there = error_from_json(error_as_json(error))
    assert type(there) is DiskError
    assert (str(there), vars(there)) == (str(error), vars(error))


def test_subclass_crosses_as_its_nearest_known_ancestor() -> None:
    class ThrottledError(errors.StoreUnavailableError):
        pass

    there = error_from_json(error_as_json(ThrottledError("slow down")))
    assert type(there) is errors.StoreUnavailableError
    assert str(there) == "slow down"


@pytest.mark.parametrize("error", [ZeroDivisionError("x"), KeyError("x"), OSError(5, "io")])
def test_unexpected_error_says_what_it_was(error: Exception) -> None:
    assert not is_expected(error)
    there = error_from_json(error_as_json(error))
    assert type(there) is errors.RemoteStorageError
    assert str(there) == f"unexpected {type(error).__name__}: {error}"


def test_long_text_is_cut() -> None:
    described = error_as_json(errors.StoreDeniedError("<html>" * 10_000))
    assert len(described["text"]) == TEXT_MAX


@pytest.mark.parametrize(
    "bad",
    [
        {},
        {"type": "SystemExit", "text": "", "fields": {}},
        {"type": "ObjectNotFoundError", "text": "", "fields": {}},
        {"type": [], "text": "", "fields": {}},
    ],
)
def test_other_json_is_refused(bad: dict[str, object]) -> None:
    with pytest.raises((KeyError, TypeError)):
        error_from_json(bad)
