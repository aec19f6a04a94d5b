"""How the modules of the fast tier are divided among processes."""

from pathlib import Path

import pytest

from tests.shares import COSTLY, cost, fast_modules, shares

TESTS = Path(__file__).parent


def named(words: str) -> list[Path]:
    return [Path(word) for word in words]


@pytest.mark.parametrize(
    ("costs", "divided"),
    [
        ([1, 1, 1, 1, 1, 1], ["ab", "cd", "ef"]),
        ([9, 1, 1, 1, 3, 3], ["a", "bcd", "ef"]),
        ([1, 1, 1, 1, 1, 9], ["abcd", "e", "f"]),
        ([0, 0, 9, 0, 0, 0], ["ab", "c", "def"]),
    ],
)
def test_neighbours_take_equally_long(costs: list[float], divided: list[str]) -> None:
    """Every module once, in order, whatever it is said to cost."""
    found = shares(named("abcdef"), costs, 3)
    assert [path for share in found for path in share] == named("abcdef")
    sums = [sum(costs["abcdef".index(path.name)] for path in share) for share in found]
    best = [sum(costs["abcdef".index(name)] for name in share) for share in divided]
    assert max(sums) == max(best)


def test_there_are_no_more_shares_than_modules() -> None:
    """A process without a module would collect all there are."""
    assert shares(named("ab"), [1, 1], 3) == [named("a"), named("b")]
    assert shares([], [], 3) == []


def test_what_may_be_fast_is_in_a_share() -> None:
    """Of slower folders what has a quick test; of the others what is not slower as a whole."""
    found = {path.relative_to(TESTS).as_posix() for path in fast_modules(TESTS)}
    assert "system/broker/test_restart.py" in found
    assert "system/broker/test_fatal_ends.py" not in found
    assert "spark/test_streams.py" not in found
    assert "simulation/test_known_losses.py" in found
    below = {path.relative_to(TESTS).as_posix() for path in (TESTS / "unit").rglob("test_*.py")}
    assert below <= found


def test_costly_modules_are_there() -> None:
    """One that was renamed would make its share the longest."""
    for name in COSTLY:
        assert (TESTS / name).is_file(), name
        assert cost(TESTS / name, TESTS) == COSTLY[name]
