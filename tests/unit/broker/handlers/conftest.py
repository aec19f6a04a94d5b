"""Fixtures of the handlers' tests."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.unit.broker.handlers.groups_fixture import Groups
from tests.unit.broker.handlers.transactions_fixture import Transactions


@pytest.fixture
async def groups() -> AsyncIterator[Groups]:
    """A group coordinator that has loaded its one partition."""
    groups = Groups()
    await groups.start()
    yield groups
    await groups.coordinator.stop()


@pytest.fixture
def transactions() -> Iterator[Transactions]:
    """A transaction coordinator that has loaded its one partition."""
    transactions = Transactions()
    yield transactions
    transactions.close()
