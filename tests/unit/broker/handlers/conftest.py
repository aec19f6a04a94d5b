"""Fixtures of the handlers' tests."""

from collections.abc import AsyncIterator

import pytest

from tests.unit.broker.handlers.groups_fixture import Groups


@pytest.fixture
async def groups() -> AsyncIterator[Groups]:
    """A group coordinator that has loaded its one partition."""
    groups = Groups()
    await groups.start()
    yield groups
    await groups.coordinator.stop()
