"""Runs tiers of tests one after the other, and says at the end how each went.

    tier       tests                                                      properties try
    fast       units, formats, contracts, the short ones of the others    a few inputs
    system     whole brokers in real time: restarts, hostile clients      as asked for
    interop    real clients, Kafka's tools, a released Kafka, Spark once  as asked for
    deep       what takes minutes each: crash points, long load           inputs no run had before

`python -m tests.tiers fast system interop [arguments of pytest]`: every tier runs, also after one
that failed. Several tiers in one run are a check before a merge: the fast one then tries all inputs
that a property asks for.

Python runs, also in the processes that tests start. Where the hot path is compiled (`make native`)
and fresh, the fast tier then runs what reaches compiled modules once more on that path, with a few
inputs for a property. VARVE_NATIVE=off leaves this out, VARVE_NATIVE=require runs all of the tiers
compiled. The summary says which path it was.

A test that takes longer than its tier allows has failed; where nothing ends for `SILENT_S`
more the run is ended, and the tests that had not ended are named.

Whole brokers, real clients, and the programs and sockets of some fast tests run in real time, on
machines that others share. Of such a tier up to `SECOND_TRIES_MAX` failed tests are tried once
more, alone, in a new process; what then passes is named in the summary, to be looked at. More
failures, or one that fails twice, fail the run.

Modules run two at a time, of the fast tier three. Those that judge time or memory (`measures`) come
after them, one by one, with the machine to themselves.
"""

import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Final, NamedTuple

from bench.structure import TIMES
from native.loader import VARIABLE, CodePath, CompiledCodeError, prefer_compiled

PROCESSES: Final = 2

FAST_PROCESSES: Final = 3
"""On two cores: a tenth of these tests' time is waiting for leases and time-outs."""

SILENT_S: Final = 480
"""So much longer than one test may take may pytest say nothing: its end may take its time, too."""

LOOK_S: Final = 5
"""How often a silent run is looked at."""

SECOND_TRIES_MAX: Final = 3
"""Of one run of pytest: more failures than that are no accident."""

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
        on_both: Whether what reaches compiled modules runs compiled, too.
        real_time: Whether a test may be tried a second time.
        longest_s: How long one test may take with what it needs, which may be fetched first.
    """

    markers: str
    folders: tuple[str, ...] = ("tests",)
    profile: str = "settled"
    processes: int = PROCESSES
    measures: bool = False
    on_both: bool = False
    real_time: bool = False
    longest_s: int = 420


TIERS: Final = {
    "fast": Tier(
        "(quick or not (system or interop)) and not (slow or clients or spark)",
        profile="fast",
        on_both=True,
        real_time=True,
        processes=FAST_PROCESSES,
    ),
    "system": Tier(
        "system and not (quick or interop or slow or clients or spark)",
        ("tests/system", "tests/checker", "tests/simulation"),
        measures=True,
        real_time=True,
    ),
    "interop": Tier(
        "interop and not (quick or slow or clients or spark)",
        ("tests/interop", "tests/differential", "tests/checker", "tests/spark"),
        real_time=True,
    ),
    "deep": Tier(
        "(slow or not (system or interop)) and not (clients or spark)",
        profile="search",
        processes=1,
        longest_s=4 * 3600,
    ),
}

SUMMARY: Final = re.compile(rb"(\d+) (passed|failed|skipped|errors?|xfailed|warnings?)\b")


class End(NamedTuple):
    """How a run of pytest on one path went.

    Attributes:
        path: The path's name in the summary.
        code: Exit code of pytest.
        last: The last line that it printed.
        seconds: How long it took.
        second_try: Tests that failed, and passed when they were tried again.
    """

    path: str
    code: int
    last: bytes
    seconds: float
    second_try: tuple[str, ...] = ()


def commands(tier: Tier, arguments: list[str]) -> list[list[str]]:
    """Pytest's arguments: first for what may run side by side, then for what measures."""
    named = any(Path(word.partition("::")[0]).exists() for word in arguments)
    where = [*arguments, *(() if named else tier.folders)]
    # In their order: xdist's own puts modules of one test last, and these are the longest.
    order = ["--dist", "loadfile", "--no-loadscope-reorder"]
    side_by_side = ["-n", str(tier.processes), *order] if tier.processes > 1 else []
    # pytest's own watchdog is a thread for each test: a tenth of the time of thousands of units.
    watchdog = ["-o", "faulthandler_timeout=0"]
    limits = ["-p", "tests.unfinished", *watchdog, "--timeout", str(tier.longest_s)]
    if not tier.measures:
        return [["-m", tier.markers, *limits, *side_by_side, *where]]
    return [
        ["-m", f"({tier.markers}) and not measures", *limits, *side_by_side, *where],
        ["-m", f"({tier.markers}) and measures", *limits, *where],
    ]


def on_both(arguments: list[str]) -> list[str]:
    """The arguments for the second path: what of the named tests reaches compiled modules.

    Returns:
        Empty if none of them does.
    """
    # Not above: it decides for this process which code is loaded.
    from tests.code_path import modules_on_both

    paths = {word: Path(word.partition("::")[0]).resolve() for word in arguments}
    named = {word: path for word, path in paths.items() if path.exists()}
    others = [word for word in arguments if word not in named]
    modules = [path.resolve() for path in modules_on_both()]
    if not named:
        return [*others, *map(str, modules)]
    found: list[str] = []
    for word, path in named.items():
        below = [str(module) for module in modules if module.is_relative_to(path)]
        found += below if path.is_dir() else [word] * bool(below)
    return [*others, *found] if found else []


def run(command: list[str], profile: str, path: str, variable: str, silent_s: float) -> End:
    """Run pytest once on one path, and pass on what it prints.

    Args:
        command: Arguments of pytest.
        profile: How much properties try.
        path: The path's name in the summary.
        variable: What `VARVE_NATIVE` is for it.
        silent_s: After so long without a word the run is told to end, after as long again killed.
    """
    environment = {"HYPOTHESIS_PROFILE": profile, **os.environ, VARIABLE: variable}
    # Without bytecode of its own each process compiles all tests, and rewrites what they assert.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    tail = b""
    endings = iter([signal.SIGTERM])
    ended: list[int] = []
    begin = heard = time.monotonic()
    with subprocess.Popen(
        [sys.executable, "-m", "pytest", "-q", *command], stdout=subprocess.PIPE, env=environment
    ) as process:
        # What ends this run from outside may know of this process only.
        def pass_on(number: int, _frame: FrameType | None) -> None:
            process.send_signal(number)
            ended.append(number)

        before = signal.signal(signal.SIGTERM, pass_on)
        assert process.stdout is not None
        descriptor = process.stdout.fileno()
        while True:
            if select.select([descriptor], [], [], min(LOOK_S, silent_s))[0]:
                heard = time.monotonic()
                if not (said := os.read(descriptor, 65536)):
                    break
                sys.stdout.buffer.write(said)
                sys.stdout.buffer.flush()
                tail = (tail + said)[-4096:]
            elif process.poll() is not None:
                break  # And a program that a test has left behind keeps the pipe open.
            elif time.monotonic() - heard >= silent_s:
                print(f"\n-- nothing has ended for {silent_s:.0f} s", flush=True)
                heard = time.monotonic()
                process.send_signal(next(endings, signal.SIGKILL))
    signal.signal(signal.SIGTERM, before)
    if ended:
        sys.exit(128 + signal.SIGTERM)
    last = next((line for line in reversed(tail.splitlines()) if line.strip()), b"")
    return End(path, process.returncode, last, time.monotonic() - begin)


def run_twice(command: list[str], profile: str, path: str, variable: str, silent_s: float) -> End:
    """As `run`, and once more what failed, if that is little; see the top of the module."""
    with tempfile.TemporaryDirectory() as directory:
        failed_path = Path(directory, "failed")
        plugin = ["-p", "tests.failed_tests", "--failed-to", str(failed_path)]
        first = run([*plugin, *command], profile, path, variable, silent_s)
        failed = failed_path.read_text().splitlines() if failed_path.exists() else []
    if not 0 < len(failed) <= SECOND_TRIES_MAX:
        return first
    print(f"-- a second try, alone: {' '.join(failed)}", flush=True)
    limits = command[command.index("-p") : command.index("--timeout") + 2]
    second = run([*limits, *failed], profile, path, variable, silent_s)
    seconds = first.seconds + second.seconds
    if second.code:
        return first._replace(seconds=seconds)
    counts = count([first])
    counts["passed"] += len(failed)
    kept = ", ".join(f"{counts[kind]} {kind}" for kind in ("passed", "skipped") if counts[kind])
    return End(path, 0, kept.encode(), seconds, tuple(failed))


def code_of(ends: list[End]) -> int:
    """Of all parts of a tier: the first that failed, else `NO_TESTS` if no part had a test."""
    codes = [end.code for end in ends if end.code != NO_TESTS]
    return next((code for code in codes if code), 0) if codes else NO_TESTS


def run_tier(tier: Tier, arguments: list[str], profile: str, code: CodePath) -> list[End]:
    """Run all parts of a tier, on one path or, where that is asked for, on both."""

    def run_parts(profile: str, path: str, variable: str, arguments: list[str]) -> list[End]:
        silent_s, run_part = tier.longest_s + SILENT_S, run_twice if tier.real_time else run
        return [
            run_part(words, profile, path, variable, silent_s)
            for words in commands(tier, arguments)
        ]

    if code.modules and os.environ.get(VARIABLE) == "require":
        return run_parts(profile, "compiled", "require", arguments)
    ends = run_parts(profile, "python", "off", arguments)
    if code.modules and tier.on_both and (again := on_both(arguments)):
        print("-- once more, compiled", flush=True)
        ends += run_parts(tier.profile, "compiled", "require", again)
    return ends


def count(ends: list[End]) -> Counter[str]:
    """How many tests passed, failed and so on."""
    counts: Counter[str] = Counter()
    for end in ends:
        for number, kind in SUMMARY.findall(end.last):
            counts[kind.decode()] += int(number)
    return counts


def describe(ends: list[End]) -> str:
    """By path: how many tests passed and failed, and how long they took."""
    said = []
    for path in dict.fromkeys(end.path for end in ends):
        own = [end for end in ends if end.path == path]
        results = ", ".join(f"{number} {kind}" for kind, number in count(own).items())
        minutes, seconds = divmod(round(sum(end.seconds for end in own)), 60)
        said.append(f"{path}: {results} in {minutes}:{seconds:02} min")
    return "; ".join(said)


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
    try:
        code = prefer_compiled()
    except CompiledCodeError as error:
        print(f"tiers: {error}", file=sys.stderr)
        return 1
    tiers: dict[str, list[End]] = {}
    for name in names:
        print(f"-- {name} tests", flush=True)
        profile = TIERS[name].profile if len(names) == 1 else "settled"
        tiers[name] = run_tier(TIERS[name], arguments, profile, code)
    print(f"-- hot path: {code.describe()}")
    total: Counter[str] = Counter()
    for name, ends in tiers.items():
        total += count(ends)
        print(f"-- {name}: {describe(ends)} (exit code {code_of(ends)})")
        for test in (test for end in ends for test in end.second_try):
            print(f"--   passed at the second try only: {test}")
    if not arguments:
        keep_times({name: round(sum(e.seconds for e in ends)) for name, ends in tiers.items()})
    if len(names) > 1:
        print("=== " + ", ".join(f"{count} {kind}" for kind, count in total.items()) + " ===")
    return 1 if any(code_of(ends) for ends in tiers.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
