"""`python -m tests.unit.storage.crash_fuzz`; see the package."""

import argparse
import sys
import time
from collections.abc import Sequence
from itertools import count

from tests.unit.storage.crash_fuzz.runner import (
    LENGTH,
    describe,
    draw_steps,
    failure_of,
    parse_steps,
    run,
    shrink,
)


def main(arguments: Sequence[str]) -> int:
    """Exit code 1 if a seed has failed."""
    parser = argparse.ArgumentParser(prog="crash_fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the first run")
    parser.add_argument("--runs", type=int, help="how many seeds")
    parser.add_argument("--minutes", type=float, default=1.0, help="without --runs: for so long")
    parser.add_argument("--length", type=int, default=LENGTH, help="steps of a run")
    parser.add_argument("--steps", help="these in place of those drawn, and with a traceback")
    parser.add_argument("--go-on", action="store_true", help="also after a failing run")
    chosen = parser.parse_args(arguments)
    if chosen.steps is not None:
        run(chosen.seed, parse_steps(chosen.steps))
        return 0
    began, failed, seed = time.monotonic(), 0, chosen.seed
    for seed in count(chosen.seed):
        passed_s = time.monotonic() - began
        is_over = passed_s >= chosen.minutes * 60
        if seed - chosen.seed >= chosen.runs if chosen.runs is not None else is_over:
            break
        steps = draw_steps(seed, chosen.length)
        failure = failure_of(seed, steps)
        if failure is None:
            continue
        failed += 1
        small = shrink(seed, steps)
        again = failure_of(seed, small) or failure
        write = f"after {passed_s:.1f} s, {describe(seed, small, again)}\n"
        sys.stdout.write(write)
        sys.stdout.flush()
        if not chosen.go_on:
            break
    passed_s = time.monotonic() - began
    sys.stdout.write(f"{seed - chosen.seed} seeds, {passed_s:.0f} s, {failed} failed\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
