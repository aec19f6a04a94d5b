"""Coordinators that are closed after the test."""

from collections.abc import Callable, Iterator

import pytest

from tests.harness.transactions import Coordinator

MakeCoordinator = Callable[..., Coordinator]


@pytest.fixture
def make() -> Iterator[MakeCoordinator]:
    """Make coordinators; see `Coordinator`."""
    made: list[Coordinator] = []

    def new(**options: object) -> Coordinator:
        made.append(Coordinator(**options))  # type: ignore[arg-type]  # passed through
        return made[-1]

    yield new
    for coordinator in made:
        coordinator.close()


@pytest.fixture
def c(make: MakeCoordinator) -> Coordinator:
    """A coordinator with transaction.version 2."""
    return make()


@pytest.fixture
def old(make: MakeCoordinator) -> Coordinator:
    """A coordinator with transaction.version 0."""
    return make(version=0)
