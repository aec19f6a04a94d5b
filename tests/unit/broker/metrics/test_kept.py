"""What is kept is counted at the moment of the scrape."""

from broker.metrics.kept import KeptMetrics
from broker.metrics.page import render


async def test_each_kind_has_a_sample() -> None:
    things: list[int] = []
    metrics = KeptMetrics({"things": lambda: len(things), "others": lambda: 7})
    things += [1, 2, 3]
    page = render([family async for family in metrics.collect()]).decode()
    assert 'varve_kept{what="things"} 3.0' in page
    assert 'varve_kept{what="others"} 7.0' in page
