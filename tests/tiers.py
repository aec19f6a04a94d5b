"""Runs tiers of tests one after the other, and says at the end how each went.

    tier       tests                                                      properties try
    fast       units, formats, contracts, the short ones of the others    a few inputs
    system     whole brokers in real time: restarts, hostile clients      as asked for
    interop    real clients, Kafka's tools, a released Kafka              as asked for
    deep       what takes minutes each: crash points, long load           inputs no run had before

`python -m tests.tiers fast system interop [arguments of pytest]`: every tier runs, also after one
that failed. Several tiers in one run are a check before a merge: the fast one then tries all inputs
that a property asks for.

Modules run two at a time. Those that judge time or memory (`measures`) come after them, one by one,
with the machine to themselves.
"""

import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Final, NamedTuple

from bench.structure import TIMES

PROCESSES: Final = 2

NO_TESTS: Final = 5
"""Exit code of pytest when nothing was to be run."""


class Tier(NamedTuple):
    """What pytest is told.

    Attributes:
        markers: Which tests.
        folders: Where all of them are; nothing else is read for them.
        profile: How much properties try, see `tests.effort`.
        processes: Side by side, for what measures nothing.
        measures: Whether some of them do.
    """

    markers: str
    folders: tuple[str, ...] = ("tests",)
    profile: str = "settled"
    processes: int = PROCESSES
    measures: bool = False


TIERS: Final = {
    "fast": Tier(
        "(quick or not (system or interop)) and not (slow or clients or spark)", profile="fast"
    ),
    "system": Tier(
        "system and not (quick or interop or slow or clients or spark)",
        ("tests/system", "tests/checker", "tests/simulation"),
        measures=True,
    ),
    "interop": Tier(
        "interop and not (quick or slow or clients or spark)",
        ("tests/interop", "tests/differential", "tests/checker"),
    ),
    "deep": Tier(
        "(slow or not (system or interop)) and not (clients or spark)",
        profile="search",
        processes=1,
    ),
}

SUMMARY: Final = re.compile(rb"(\d+) (passed|failed|skipped|errors?|xfailed|warnings?)\b")


class End(NamedTuple):
    """How a run of pytest went: its exit code and last line, and how long it took."""

    code: int
    last: bytes
    seconds: float


def commands(tier: Tier, arguments: list[str]) -> list[list[str]]:
    """Pytest's arguments: first for what may run side by side, then for what measures."""
    named = any(Path(word.partition("::")[0]).exists() for word in arguments)
    where = [*arguments, *(() if named else tier.folders)]
    side_by_side = ["-n", str(tier.processes), "--dist", "loadfile"] if tier.processes > 1 else []
    if not tier.measures:
        return [["-m", tier.markers, *side_by_side, *where]]
    return [
        ["-m", f"({tier.markers}) and not measures", *side_by_side, *where],
        ["-m", f"({tier.markers}) and measures", *where],
    ]


def run(command: list[str], profile: str) -> End:
    """Run pytest once, and pass on what it prints."""
    environment = {"HYPOTHESIS_PROFILE": profile, **os.environ}
    last = b""
    begin = time.monotonic()
    with subprocess.Popen(
        [sys.executable, "-m", "pytest", "-q", *command], stdout=subprocess.PIPE, env=environment
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
            last = line.strip() or last
    return End(process.returncode, last, time.monotonic() - begin)


def code_of(ends: list[End]) -> int:
    """Of all parts of a tier: the first that failed, else `NO_TESTS` if no part had a test."""
    codes = [end.code for end in ends if end.code != NO_TESTS]
    return next((code for code in codes if code), 0) if codes else NO_TESTS


def keep_times(seconds: dict[str, int]) -> None:
    """Seconds that each tier took, for `bench.structure` to tell."""
    TIMES.parent.mkdir(parents=True, exist_ok=True)
    known = json.loads(TIMES.read_text()) if TIMES.exists() else {}
    TIMES.write_text(json.dumps(known | seconds))


def main(arguments: list[str]) -> int:
    """Exit code 1 if any tier failed."""
    names = []
    while arguments and arguments[0] in TIERS:
        names.append(arguments.pop(0))
    tiers: dict[str, list[End]] = {}
    for name in names:
        print(f"-- {name} tests", flush=True)
        profile = TIERS[name].profile if len(names) == 1 else "settled"
        tiers[name] = [run(command, profile) for command in commands(TIERS[name], arguments)]
    total: Counter[str] = Counter()
    for name, ends in tiers.items():
        counts: Counter[str] = Counter()
        for end in ends:
            for count, kind in SUMMARY.findall(end.last):
                counts[kind.decode()] += int(count)
        total += counts
        minutes, seconds = divmod(round(sum(end.seconds for end in ends)), 60)
        said = ", ".join(f"{count} {kind}" for kind, count in counts.items())
        print(f"-- {name}: {said} in {minutes}:{seconds:02} min (exit code {code_of(ends)})")
    if not arguments:
        keep_times({name: round(sum(e.seconds for e in ends)) for name, ends in tiers.items()})
    if len(names) > 1:
        print("=== " + ", ".join(f"{count} {kind}" for kind, count in total.items()) + " ===")
    return 1 if any(code_of(ends) for ends in tiers.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
