"""Unavailable partitions are reported to the operator until they are served again."""

from broker.coordinator.unavailable_partitions import UnavailablePartitions
from storage.environment.alerts import AlertKind, Alerts


def test_an_alert_for_each_until_it_can_be_read() -> None:
    alerts = Alerts()
    unavailable = UnavailablePartitions("__consumer_offsets", alerts)
    unavailable.set(3, "groups cannot be loaded: damage")
    unavailable.set(7, "its log is not served here")
    assert len(unavailable) == 2
    first, second = alerts.all()
    assert first.kind is second.kind is AlertKind.COORDINATOR_UNAVAILABLE
    assert first.subject == "__consumer_offsets-3"
    assert first.text.startswith("groups cannot be loaded: damage; its clients get NOT_")
    unavailable.clear(3)
    unavailable.clear(3)
    unavailable.clear(99)
    assert [alert.subject for alert in alerts.all()] == ["__consumer_offsets-7"]
    # With the topic all of them are gone.
    unavailable.set(3, "damage")
    unavailable.clear_all()
    assert alerts.all() == []
    assert len(unavailable) == 0
