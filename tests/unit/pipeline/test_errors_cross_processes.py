"""Every exception that a worker of these packages may end with arrives in the driver as it was.

A class that cannot be unpickled does not fail here or there but in whoever waits for the worker,
with a TypeError about a constructor in place of the object and position that were to be told.
"""

import importlib
import inspect
import pickle
import pkgutil
import typing
from collections.abc import Hashable, Iterator, Sequence
from typing import Any
from uuid import UUID

import pytest

from pipeline.plan.piece import PartitionName
from pipeline.read.broker.errors import BrokerError

PACKAGES = ("pipeline", "protocol", "storage", "tiered")

SAMPLES: dict[Any, Any] = {
    str: "text",
    int: 7,
    bool: True,
    object: "orders-0",
    Hashable: "key",
    UUID: UUID(int=5),
    int | None: 3,
    PartitionName: PartitionName("orders", UUID(int=1), 2),
    BrokerError: BrokerError("it does not answer"),
    Sequence[str]: ("one", "two"),
    tuple[tuple[int, str], ...]: ((1, "why"),),
}
"""What constructors take, by its type."""

STAY_WITHIN_A_PROCESS = {
    # They carry an open segment, or work to be done, to whoever called within the same thread.
    "SuspectBatchError",
    "_DamagedFileError",
    "MisplacedSegmentError",
    "WouldBlockError",
}


def exception_classes() -> Iterator[type[BaseException]]:
    """All that the packages define, private ones too."""
    for package in PACKAGES:
        path = importlib.import_module(package).__path__
        for module in pkgutil.walk_packages(path, f"{package}."):
            if module.name.endswith("__main__"):
                continue
            for one in vars(importlib.import_module(module.name)).values():
                if (
                    isinstance(one, type)
                    and issubclass(one, BaseException)
                    and one.__module__ == module.name
                ):
                    yield one


CLASSES = [one for one in exception_classes() if one.__name__ not in STAY_WITHIN_A_PROCESS]


def instance(kind: type[BaseException]) -> BaseException:
    """One with a value for everything that its constructor takes."""
    constructor = kind.__init__
    if not inspect.isfunction(constructor):
        return kind("the text", 7)
    hints = typing.get_type_hints(constructor)
    args, named = [], {}
    for one in [*inspect.signature(constructor).parameters.values()][1:]:
        if one.kind is one.KEYWORD_ONLY:
            named[one.name] = SAMPLES[hints[one.name]]
        else:
            args.append(SAMPLES[hints[one.name]])
    return kind(*args, **named)


def test_all_packages_were_looked_through() -> None:
    names = {one.__name__ for one in CLASSES}
    assert {"CorruptRemoteDataError", "DiskError", "DecodeError", "BrokenBatchError"} <= names
    assert len(CLASSES) > 90


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: f"{kind.__module__}.{kind.__name__}")
def test_an_error_arrives_as_it_was(kind: type[BaseException]) -> None:
    error = instance(kind)
    same = pickle.loads(pickle.dumps(error))
    assert type(same) is kind
    assert str(same) == str(error)
    assert same.args == error.args
    assert vars(same).keys() == vars(error).keys()
    for name, value in vars(error).items():
        # An error within an error is another object that says the same.
        assert str(vars(same)[name]) == str(value)
