"""Offsets that are not there any more."""

import logging

import pytest

from pipeline.read.read_errors import LostOffsetsError, ReadError
from pipeline.source.data_loss import SENTENCES_MAX, PlanLosses, warn_of_options
from tests.unit.pipeline.source.views import ZERO, name_of


def test_a_loss_is_an_error_with_partition_and_offsets() -> None:
    with pytest.raises(LostOffsetsError, match="t-0: offsets 5 to 9 are lost: why"):
        PlanLosses(fail=True).lost(name_of(ZERO), 5, 10, "why")
    with pytest.raises(ReadError, match=r"who knows.*failOnDataLoss=false"):
        PlanLosses(fail=True).unreadable("who knows")


def test_nothing_is_no_loss() -> None:
    PlanLosses(fail=True).lost(name_of(ZERO), 5, 5, "why")
    PlanLosses(fail=True).lost(name_of(ZERO), 6, 5, "why")


def test_losses_that_are_no_errors_are_one_warning_with_their_count(
    caplog: pytest.LogCaptureFixture,
) -> None:
    losses = PlanLosses(fail=False)
    for number in range(SENTENCES_MAX + 3):
        losses.lost(name_of(ZERO), number * 10, number * 10 + 5, "why")
    with caplog.at_level(logging.WARNING, "varve.spark"):
        losses.warn()
    [message] = caplog.messages
    assert message.startswith("65 offsets are lost and skipped")
    assert "t-0: offsets 0 to 4 (why)" in message
    assert message.endswith("and 3 more places")


def test_without_losses_nothing_is_said(caplog: pytest.LogCaptureFixture) -> None:
    PlanLosses(fail=False).warn()
    warn_of_options(())
    assert caplog.messages == []


def test_options_without_effect_are_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "varve.spark"):
        warn_of_options(("kafka.group.id", "maxTriggerDelay"))
    assert caplog.messages == ["options without effect: kafka.group.id, maxTriggerDelay"]
