"""How logs that move between directories are set up."""

import pytest

from broker.lifecycle.log_moves import moving_threads
from config.broker import BrokerConfig


@pytest.mark.parametrize(("given", "threads"), [(None, 2), (-2, 2), (0, 2), (1, 1), (5, 5)])
def test_a_number_of_threads_that_is_none_is_one_for_every_directory(
    given: int | None, threads: int
) -> None:
    """It ended the start with a traceback."""
    settings = BrokerConfig(log_dirs=("/a", "/b"), num_replica_alter_log_dirs_threads=given)
    assert moving_threads(settings) == threads
