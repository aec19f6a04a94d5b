"""What the generated modules in `protocol.messages` share."""

from typing import Any, ClassVar, Final

from protocol.errors import DecodeError

EMPTY: Final[list[Any]] = []
"""Default of list parameters: "not given", replaced by a fresh list, never stored."""

REQUEST_ELEMENTS_MAX: Final = 25_000
"""How many list elements and unknown tagged fields one request may have in all.

An element may take one byte on the wire and a hundred in memory: without a limit a frame of 100 MB
could claim 10 GB and block the loop for a minute. At this limit it is about 5 MB, and 20 to 70 ms,
the loop's time before what is asked for has been checked (`broker.requests.request_limits`
does).
"""


class Message:
    """A request, a response, or a structure within one.

    A plain mutable record: attributes in `__slots__`, all of them always set. Two are equal when
    they are of one class and hold equal values, so none can be hashed.
    """

    __slots__: ClassVar[tuple[str, ...]] = ()

    def __eq__(self, other: object) -> bool:  # type: ignore[explicit-override]  # needs Python 3.12
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __repr__(self) -> str:  # type: ignore[explicit-override]  # needs Python 3.12
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({values})"


def null_error(field: str) -> DecodeError:
    """Make the error for a null where the version allows none."""
    return DecodeError(f"{field} is null")


def count_error(field: str, count: int) -> DecodeError:
    """Make the error for an array that says to be longer than the bytes that are left."""
    return DecodeError(f"{field} claims {count} elements, more than the bytes that are left")


def limit_error(field: str) -> DecodeError:
    """Make the error for a request with more than `REQUEST_ELEMENTS_MAX` elements."""
    return DecodeError(f"request has more than {REQUEST_ELEMENTS_MAX} elements, reached in {field}")


def end_error(field: str) -> DecodeError:
    """Make the error for a tagged field whose content and size disagree, or that ends early."""
    return DecodeError(f"{field} reaches beyond its end")


def version_error(message: str, version: int) -> DecodeError:
    """Make the error for a version that has no decoder."""
    return DecodeError(f"{message} has no version {version} here")


def broken(message: str, version: int) -> DecodeError:
    """Make the error for a body that ends within a field."""
    return DecodeError(f"{message} v{version} ends early")
