"""How many alerts are set can be watched; the words are elsewhere."""

from broker.metrics.alerts import AlertMetrics
from broker.metrics.page import render
from storage.environment.alerts import AlertKind, Alerts


async def test_every_kind_has_a_sample_also_when_nothing_is_wrong() -> None:
    alerts = Alerts(alerts_max=1)
    alerts.set(AlertKind.DIRECTORY_OFFLINE, "/a", "gone")
    alerts.set(AlertKind.DIRECTORY_OFFLINE, "/b", "no room for this one")
    page = render([family async for family in AlertMetrics(alerts).collect()]).decode()
    assert 'varve_alerts{kind="directory-offline"} 1.0' in page
    assert "varve_alerts_refused_total 1.0" in page
    for kind in AlertKind:
        assert f'varve_alerts{{kind="{kind.value}"}}' in page
