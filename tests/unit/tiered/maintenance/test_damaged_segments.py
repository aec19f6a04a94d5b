"""One alert for each partition with damaged segments, whoever finds them."""

from storage.environment.alerts import AlertKind, Alerts
from tests.unit.tiered.metadata.segment_builder import segment
from tiered.maintenance.damaged_segments import LISTED, VERIFIED, DamagedSegments


def texts(alerts: Alerts) -> list[str]:
    assert {alert.kind for alert in alerts.all()} <= {AlertKind.TIER_SEGMENT_DAMAGED}
    return [alert.text for alert in alerts.all()]


def test_a_segment_that_two_have_found_counts_once() -> None:
    alerts = Alerts()
    damaged = DamagedSegments(alerts)
    first, second = segment(0, 9), segment(50, 59)
    damaged.found(LISTED, [second, first])
    damaged.found(VERIFIED, [second])
    (text,) = texts(alerts)
    assert "objects of 2 remote segments" in text
    assert "the first from offset 0 on, the last to offset 59" in text
    assert "--before-offset 60`" in text
    damaged.found(LISTED, [])
    (text,) = texts(alerts)
    assert "objects of 1 remote segments" in text
    damaged.found(VERIFIED, [])
    assert texts(alerts) == []


def test_a_segment_that_is_whole_is_dropped_whoever_has_found_it() -> None:
    alerts = Alerts()
    damaged = DamagedSegments(alerts)
    first, second = segment(0, 9), segment(50, 59)
    damaged.found(LISTED, [first, second])
    damaged.found(VERIFIED, [first])
    damaged.is_whole(first)
    (text,) = texts(alerts)
    assert "the first from offset 50 on" in text
    damaged.is_whole(second)
    damaged.is_whole(segment(70, 79))
    assert texts(alerts) == []
