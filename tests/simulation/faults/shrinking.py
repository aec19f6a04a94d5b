"""Makes a failing run small: fewer faults, a smaller cluster's load, and a script that replays it.

    faults     left out by halves, then one by one
    shape      transactions, groups and partitions left out, one kind after the other
    length     ends soon after what went wrong

A smaller run counts only if it breaks the same rule: another failure is another case.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from tests.simulation.faults.nemesis import Fault
from tests.simulation.outcome import Outcome
from tests.simulation.run import run
from tests.simulation.shape import Shape

RULE: Final = re.compile(
    r"\b(?:I\d+|[AEMQRU](?= Place)|T(?= (?:leaver|txn|Place)))\b"
    r"|not within|offset|lost|doubled|transaction"
)

LEAST: Final = {"transactional": 0, "members": 0, "partitions": 1}
"""How little of a load is tried."""

AFTER_S: Final = 5.0
"""A run ends so long after what went wrong, where that was before its end."""


def rule_of(violation: str | None) -> str:
    """Which rule a run has broken; empty: none."""
    if violation is None:
        return ""
    found = RULE.search(violation)
    return found[0] if found else violation[:30]


@dataclass(frozen=True)
class Case:
    """A run that can be repeated."""

    seed: int
    length_s: float
    shape: Shape
    plan: list[Fault]

    def play(self) -> Outcome:
        """Run it."""
        return run(self.seed, self.length_s, shape=self.shape, plan=self.plan)


def shrink(
    case: Case,
    outcome: Outcome,
    tell: Callable[[Case, Outcome], None] = lambda _case, _outcome: None,
) -> tuple[Case, Outcome]:
    """The smallest case found that breaks the same rule; `tell` is called after each try."""
    rule = rule_of(outcome.violation)
    best = case, outcome

    def fails(smaller: Case) -> bool:
        nonlocal best
        tried = smaller.play()
        tell(smaller, tried)
        if rule_of(tried.violation) != rule:
            return False
        best = smaller, tried
        return True

    _fewer_faults(case, fails)
    for field in ("transactional", "members", "partitions"):
        shape = best[0].shape
        shape = Shape(**{**vars(shape), field: min(getattr(shape, field), LEAST[field])})
        if shape != best[0].shape:
            fails(replace(best[0], shape=shape))
    _fewer_faults(best[0], fails)
    at_s = best[1].violated_s + AFTER_S
    if at_s < best[0].length_s:
        fails(replace(best[0], length_s=round(at_s)))
    return best


def _fewer_faults(case: Case, fails: Callable[[Case], bool]) -> None:
    plan, size = case.plan, max(len(case.plan) // 2, 1)
    while plan:
        for start in range(0, len(plan), size):
            fewer = plan[:start] + plan[start + size :]
            if fails(replace(case, plan=fewer)):
                plan = fewer
                break
        else:
            if size == 1:
                return
            size = max(size // 2, 1)


def script(case: Case, *, mutant: str | None = None) -> str:
    """Python that replays a case, and prints what went wrong."""
    lines = [
        "from tests.simulation.faults.nemesis import Fault",
        "from tests.simulation.run import run",
        "from tests.simulation.shape import Shape",
    ]
    if mutant is not None:
        lines = ["from tests.simulation.mutants.catalogue import BUGS", *lines]
    lines.append("")
    if mutant is not None:
        lines.append(f"BUGS[{mutant!r}].seed()")
    lines += [f"shape = {case.shape!r}", "plan = ["]
    lines += [f"    {fault!r}," for fault in case.plan]
    lines += [
        "]",
        f"outcome = run({case.seed}, {case.length_s}, shape=shape, plan=plan)",
        "print(*outcome.done, *outcome.lines, outcome.violation, sep='\\n')",
    ]
    return "\n".join(lines) + "\n"
