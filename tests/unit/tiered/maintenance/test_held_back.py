"""What is held back has a reason and an alert, until it is admitted."""

import pytest

from storage.environment.alerts import AlertKind, Alerts
from tests.fakes.tiered.remote_metadata import FakeRemoteMetadata
from tests.unit.tiered.tasks.task_world import PARTITION
from tiered.maintenance.held_back import METADATA_TOPIC, HeldBackPartitions


@pytest.fixture
def metadata() -> FakeRemoteMetadata:
    return FakeRemoteMetadata()


@pytest.fixture
def alerts() -> Alerts:
    return Alerts()


@pytest.fixture
def held(metadata: FakeRemoteMetadata, alerts: Alerts) -> HeldBackPartitions:
    return HeldBackPartitions(metadata, alerts)


def test_reads_wait_for_what_is_held_back(
    held: HeldBackPartitions, metadata: FakeRemoteMetadata, alerts: Alerts
) -> None:
    """Readers ask the metadata, operators see the alert."""
    held.hold(PARTITION, "lost")
    assert held.reasons == {PARTITION: "lost"}
    assert metadata.doubt(PARTITION) == "lost"
    assert [(one.kind, one.subject) for one in alerts.all()] == [
        (AlertKind.TIER_METADATA_LOST, str(PARTITION))
    ]
    held.admit(PARTITION)
    assert (held.reasons, metadata.doubt(PARTITION), alerts.all()) == ({}, "", [])


def test_what_was_not_held_back_is_admitted_without_effect(
    held: HeldBackPartitions, metadata: FakeRemoteMetadata
) -> None:
    """Every partition is admitted when it begins."""
    metadata.withhold(PARTITION, "another's")
    held.admit(PARTITION)
    assert metadata.doubt(PARTITION) == "another's"


def test_losses_of_the_topic_are_an_alert_while_there_are_some(
    held: HeldBackPartitions, metadata: FakeRemoteMetadata, alerts: Alerts
) -> None:
    """They stop the collection of garbage, whether a partition is held back or not."""
    metadata.loss = "events 0 to 3 are lost"
    held.report_losses()
    (alert,) = alerts.all()
    assert alert.subject == METADATA_TOPIC
    assert alert.text.startswith("events 0 to 3 are lost. No garbage")
    metadata.loss = ""
    held.report_losses()
    assert alerts.all() == []
