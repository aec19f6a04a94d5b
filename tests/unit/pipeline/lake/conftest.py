"""Which kinds of tables the fast tier tries: each test with one, all kinds among its tests.

To commit to an Iceberg table takes a tenth of a second of the core, to a Parquet one nothing: so
one test in six has the first. The tiers before a merge try every test with every kind.
"""

import os
from collections import defaultdict
from pathlib import Path
from zlib import crc32

import pytest

from tests.effort import PROFILE
from tests.fakes.lake.tables import KINDS

LAKE = Path(__file__).parent

OF_EACH_KIND = f"{LAKE / 'sinks'}{os.sep}"
"""What a kind of table does itself is tried with all of them."""

DEAR = "iceberg"
DEAR_ONE_IN = 6

OF_JOBS = LAKE / "sinks" / "test_continuity.py"
"""There, but about what a job does with a table that it finds."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out all kinds but one of each test, unless tests are asked for by their names."""
    asked_for = config.option.keyword or any("::" in word for word in config.args)
    if PROFILE != "fast" or asked_for:
        return
    kinds: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if str(item.path).startswith(f"{LAKE}{os.sep}") and (test := _without_kind(item)):
            kinds[test].append(item)
    left_out = {
        item for test, found in kinds.items() for item in set(found) - {_chosen(test, found)}
    }
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=list(left_out))


def _chosen(test: str, found: list[pytest.Item]) -> pytest.Item:
    """The one whose kind the fast tier tries: the same in every run."""
    number, rest = divmod(crc32(test.encode()), DEAR_ONE_IN)
    dear = [item for item in found if _kind(item) == DEAR]
    others = [item for item in found if _kind(item) != DEAR]
    among = (dear or others) if rest == 0 else (others or dear)
    return among[number % len(among)]


def _kind(item: pytest.Item) -> object:
    callspec = getattr(item, "callspec", None)
    return callspec.params.get("kind") if callspec is not None else None


def _without_kind(item: pytest.Item) -> str:
    """The test's name without the kind of its table; empty: all kinds are tried."""
    if _kind(item) not in KINDS:
        return ""
    if str(item.path).startswith(OF_EACH_KIND) and item.path != OF_JOBS:
        return ""
    assert isinstance(item, pytest.Function)
    others = [word for word in item.callspec.id.split("-") if word not in KINDS]
    path = item.path.relative_to(LAKE).as_posix()
    return f"{path}::{getattr(item, 'originalname', item.name)}[{'-'.join(others)}]"
