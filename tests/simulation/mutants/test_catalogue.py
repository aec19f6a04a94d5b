"""Which runs a seeded bug is looked for in."""

import pytest

from tests.simulation.mutants.catalogue import BUGS, Bug
from tests.simulation.shape import draw_shape


@pytest.mark.parametrize("bug", BUGS.values(), ids=list(BUGS))
def test_several_of_few_seeds_have_what_a_bug_is_about(bug: Bug) -> None:
    shapes = [draw_shape(seed, tiered=bug.is_tiered) for seed in range(1, 41)]
    assert sum(map(bug.fits, shapes)) > 3
