"""What the tests of the log manager start from."""

import pytest

from tests.unit.storage.manager.log_disk import Disk


@pytest.fixture
def disk() -> Disk:
    return Disk()
