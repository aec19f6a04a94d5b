"""Codec of errors from the tier process: the same type, text and attributes at the other end.

    {"type": "CorruptSegmentError", "text": "... at byte 7: ...", "fields": {"path": ..., ...}}

A subclass that is not in the table crosses as its nearest ancestor that is. An unexpected error
crosses as RemoteStorageError, and only its name and text do: the process has logged the rest.
"""

from collections.abc import Mapping
from typing import Any, Final

from storage.errors import DiskError
from tiered import errors

TEXT_MAX: Final = 4_000
"""Characters of a text: stores answer with whole pages."""

_FIELDS: Final[Mapping[type[Exception], tuple[str, ...]]] = {
    errors.TieredError: (),
    errors.RemoteStorageError: (),
    errors.ObjectNotFoundError: ("key",),
    errors.StoreUnavailableError: (),
    errors.StoreTimeoutError: (),
    errors.StoreDeniedError: (),
    errors.TierProcessError: (),
    errors.CorruptRemoteDataError: ("key", "position", "problem"),
    errors.CorruptSegmentError: ("path", "position", "problem", "rebuildable"),
    errors.QueueFullError: (),
    errors.RemoteStorageNotReadyError: (),
    errors.RemoteOffsetNotFoundError: ("offset", "epoch"),
    errors.InvalidTransitionError: (),
    errors.RemotePausedError: (),
    # The disk of the broker, not the store: full, or gone.
    DiskError: ("path", "errno"),
}

_TYPES: Final[Mapping[str, type[Exception]]] = {kind.__name__: kind for kind in _FIELDS}


def is_expected(error: BaseException) -> bool:
    """Whether its type is one that callers know."""
    return isinstance(error, tuple(_FIELDS))


def error_as_json(error: BaseException) -> dict[str, Any]:
    """For a frame."""
    for kind in type(error).__mro__:
        if kind in _FIELDS:
            fields = {name: getattr(error, name) for name in _FIELDS[kind]}
            return {"type": kind.__name__, "text": str(error)[:TEXT_MAX], "fields": fields}
    text = f"unexpected {type(error).__name__}: {error}"
    return {"type": "RemoteStorageError", "text": text[:TEXT_MAX], "fields": {}}


def error_from_json(described: Mapping[str, Any]) -> Exception:
    """What `error_as_json` wrote.

    Raises:
        KeyError, TypeError: It is something else.
    """
    kind = _TYPES[described["type"]]
    # Not by the constructor: that would make a new text of the fields.
    error = kind.__new__(kind, str(described["text"]))
    for name in _FIELDS[kind]:
        setattr(error, name, described["fields"][name])
    return error
