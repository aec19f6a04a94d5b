"""How much a property tries: a profile scales what each test asks for.

    profile    inputs of a property   steps of a machine   which inputs            of a sweep
    fast       at most 12             at most 20           the same in every run   each n-th case
    settled    as asked for           as asked for         the same in every run   all cases
    search     as asked for           as asked for         new ones in every run   all cases

A sweep tries all cases there are: each bit of a file flipped, each call failing, a death after each
change of the disk. A test that draws its own inputs, by a seed, does so `drawn` times: in the fast
tier an n-th.

`make test` is fast, `make check` settled, `make test-deep` searches: what it finds is printed so
that it can be pinned as an `@example`.
"""

import os
from collections.abc import Sequence
from typing import Final, TypeVar

from hypothesis import HealthCheck, settings

FAST_EXAMPLES: Final = 12
FAST_STEPS: Final = 20

DEFAULT_EXAMPLES: Final = 100
DEFAULT_STEPS: Final = 50

PROFILE: Final = os.environ.get("HYPOTHESIS_PROFILE", "settled")


_T = TypeVar("_T")


def load_profile() -> None:
    """Make the profile of the environment that of all properties.

    A run tells of the change under test, not of luck and not of who else keeps the machine busy:
    how long an input takes, to make or to try, fails nothing.
    """
    settings.register_profile(
        PROFILE,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        derandomize=PROFILE != "search",
        print_blob=PROFILE == "search",
        max_examples=_scaled(DEFAULT_EXAMPLES, FAST_EXAMPLES),
        stateful_step_count=_scaled(DEFAULT_STEPS, FAST_STEPS),
    )
    settings.load_profile(PROFILE)


def examples(count: int, *, steps: int = DEFAULT_STEPS) -> settings:
    """Settings of a property that wants other than the default number of inputs.

    Args:
        count: Inputs, or runs of a state machine.
        steps: Of a run of a state machine, at most.
    """
    return settings(
        max_examples=_scaled(count, FAST_EXAMPLES),
        stateful_step_count=_scaled(steps, FAST_STEPS),
    )


def swept(cases: Sequence[_T], fast: int) -> Sequence[_T]:
    """Cases of a sweep: all, and where it has to be fast each `fast`-th, from the first on.

    Where cases come in rounds, of eight bits or three kinds of death, `fast` has no factor of that:
    then some of each are among them.
    """
    return cases[::fast] if PROFILE == "fast" else cases


def drawn(count: int, fast: int) -> int:
    """How often a test that draws its own inputs does so: where it has to be fast, an n-th.

    Args:
        count: As often otherwise.
        fast: What it is divided by.
    """
    return count // fast if PROFILE == "fast" else count


def _scaled(wanted: int, fast: int) -> int:
    return min(wanted, fast) if PROFILE == "fast" else wanted
