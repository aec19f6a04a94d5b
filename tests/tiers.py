"""Runs tiers of tests one after the other, and says at the end how each went.

    tier       tests                                                      properties try
    fast       units, formats, contracts, the short ones of the others    a few inputs
    system     whole brokers in real time: restarts, hostile clients      as asked for
    interop    real clients, Kafka's tools, a released Kafka              as asked for
    deep       what takes minutes each: crash points, long load           inputs no run had before

`python -m tests.tiers fast system interop [arguments of pytest]`: every tier runs, also after one
that failed. Several tiers in one run are a check before a merge: the fast one then tries all inputs
that a property asks for.
"""

import os
import re
import subprocess
import sys
from collections import Counter
from typing import Final, NamedTuple

PROCESSES: Final = 2


class Tier(NamedTuple):
    """What pytest is told.

    Attributes:
        markers: Which tests.
        profile: How much properties try, see `tests.effort`.
        processes: Side by side; 1: in this order, with the machine to themselves.
    """

    markers: str
    profile: str = "settled"
    processes: int = 1


TIERS: Final = {
    "fast": Tier(
        "(quick or not (system or interop)) and not (slow or clients or spark)", "fast", PROCESSES
    ),
    "system": Tier("system and not (quick or interop or slow or clients or spark)"),
    "interop": Tier("interop and not (quick or slow or clients or spark)"),
    "deep": Tier("(slow or not (system or interop)) and not (clients or spark)", "search"),
}

SUMMARY: Final = re.compile(rb"(\d+) (passed|failed|skipped|errors?|xfailed|warnings?)\b")


def run(name: str, profile: str, arguments: list[str]) -> tuple[int, bytes]:
    """Run one tier; pytest's exit code, and the last line that it wrote."""
    tier = TIERS[name]
    command = [sys.executable, "-m", "pytest", "-q", "-m", tier.markers]
    if tier.processes > 1:
        command += ["-n", str(tier.processes), "--dist", "loadfile"]
    environment = {"HYPOTHESIS_PROFILE": profile, **os.environ}
    last = b""
    with subprocess.Popen(
        [*command, *arguments], stdout=subprocess.PIPE, env=environment
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
            last = line.strip() or last
    return process.returncode, last


def main(arguments: list[str]) -> int:
    """Exit code 1 if any tier failed."""
    names = []
    while arguments and arguments[0] in TIERS:
        names.append(arguments.pop(0))
    ends = {}
    for name in names:
        print(f"-- {name} tests", flush=True)
        profile = TIERS[name].profile if len(names) == 1 else "settled"
        ends[name] = run(name, profile, arguments)
    if len(names) > 1:
        total: Counter[str] = Counter()
        for name, (code, last) in ends.items():
            print(f"-- {name}: {last.decode(errors='replace')} (exit code {code})")
            for count, kind in SUMMARY.findall(last):
                total[kind.decode()] += int(count)
        print("=== " + ", ".join(f"{count} {kind}" for kind, count in total.items()) + " ===")
    return 1 if any(code for code, _ in ends.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
