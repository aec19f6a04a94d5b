import logging

import pytest

from pipeline.read.loss import SHOWN_MAX, LossReport
from tests.unit.pipeline.read.segment_world import PARTITION


def test_nothing_lost_is_nothing_said(caplog: pytest.LogCaptureFixture) -> None:
    loss = LossReport(PARTITION)
    loss.add(5, 5, "nothing")
    loss.add(5, 4, "less")
    loss.report()
    assert caplog.records == []


def test_what_is_lost_is_said_once_with_counts(caplog: pytest.LogCaptureFixture) -> None:
    loss = LossReport(PARTITION)
    loss.add(10, 20, "its chunk fails its CRC")
    loss.add(50, 51, "gone")
    assert loss.offsets == 11
    loss.report()
    loss.report()
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage() == (
        "orders.eu-west-3: 11 offsets skipped (failOnDataLoss=false): 10 to 19 (its chunk fails "
        "its CRC), 50 to 50 (gone)"
    )


def test_a_warning_has_a_largest_size(caplog: pytest.LogCaptureFixture) -> None:
    loss = LossReport(PARTITION)
    for at in range(1000):
        loss.add(2 * at, 2 * at + 1, "why")
    assert len(loss.ranges) == SHOWN_MAX
    loss.report()
    assert "1000 offsets skipped" in caplog.text
    assert caplog.text.rstrip().endswith(f"and {1000 - SHOWN_MAX} more ranges")
