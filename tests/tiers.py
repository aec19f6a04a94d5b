"""Runs tiers of tests one after the other, and says at the end how each went.

    tier       tests                                                      properties try
    fast       units, formats, contracts, the short ones of the others    a few inputs
    system     whole brokers in real time: restarts, hostile clients      as asked for
    interop    real clients, Kafka's tools, a released Kafka, Spark once  as asked for
    deep       what takes minutes each: crash points, long load           inputs no run had before

`python -m tests.tiers fast system interop [arguments of pytest]`: every tier runs, also after one
that failed. Several tiers in one run are a check before a merge: the fast one then tries all inputs
that a property asks for, and has the tests that are marked `merge`, which it leaves out alone.

Python runs, also in the processes that tests start. Where the hot path is compiled (`make native`)
and fresh, the fast tier then runs what reaches compiled modules once more on that path, with a few
inputs for a property; alone only what has a compiled module for its subject. VARVE_NATIVE=off
leaves this out, VARVE_NATIVE=require runs all of the tiers compiled. The summary says which path it
was.

A test that takes longer than its tier allows has failed; where nothing ends for `SILENT_S`
more the run is ended, and the tests that had not ended are named.

Whole brokers, real clients, and the programs and sockets of some fast tests run in real time, on
machines that others share. Of such a tier up to `SECOND_TRIES_MAX` failed tests are tried once
more, alone, in a new process; what then passes is named in the summary, to be looked at. More
failures, or one that fails twice, fail the run.

Modules run two at a time, and those that judge time or memory (`measures`) come after them, one by
one, with the machine to themselves. The whole fast tier is divided among four processes
beforehand (`tests.shares`); a part of it that is asked for is not.

With `--compile` as the first argument what has changed of the hot path is compiled, beside the
fast tests that run Python.
"""

import json
import os
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from bench.structure import TIMES
from native.loader import VARIABLE, CodePath, CompiledCodeError, prefer_compiled
from tests.build_beside import BuildBeside
from tests.pytest_runs import FAILED, Batch, End, run, run_batches, worst
from tests.shares import cost, fast_modules, shares

TESTS: Final = Path(__file__).resolve().parent

PROCESSES: Final = 2

FAST_PROCESSES: Final = 4
"""On two cores: a third of these tests' time is waiting for leases, time-outs, disks, programs."""

SHARES: Final = 2
"""Of each of these processes, one after the other: what shares cost is not known well. Of what runs
compiled, which comes last and is less, each has one: to import it takes as long as to run it."""

SILENT_S: Final = 480
"""So much longer than one test may take may pytest say nothing: its end may take its time, too."""

SECOND_TRIES_MAX: Final = 3
"""Of one run of pytest: more failures than that are no accident."""

Part = list[list[str]]
"""Arguments of pytest for each of its processes, of which `Tier.processes` run side by side."""


class Tier(NamedTuple):
    """What pytest is told.

    Attributes:
        markers: Which tests.
        folders: Where all of them are; nothing else is read for them.
        profile: How much properties try, see `tests.effort`.
        processes: Side by side, for what measures nothing.
        measures: Whether some of them do.
        on_both: Whether what reaches compiled modules runs compiled, too.
        is_divided: Whether its modules are divided among the processes beforehand.
        real_time: Whether a test may be tried a second time.
        longest_s: How long one test may take with what it needs, which may be fetched first.
        later: Marker of those that the tier leaves to the check before a merge, unless tests are
            asked for by name; it then also leaves to it most of what runs compiled.
    """

    markers: str
    folders: tuple[str, ...] = ("tests",)
    profile: str = "settled"
    processes: int = PROCESSES
    measures: bool = False
    on_both: bool = False
    is_divided: bool = False
    real_time: bool = False
    longest_s: int = 420
    later: str = ""


TIERS: Final = {
    "fast": Tier(
        "(quick or not (system or interop)) and not (slow or clients or suite or spark)",
        profile="fast",
        on_both=True,
        is_divided=True,
        real_time=True,
        processes=FAST_PROCESSES,
        later="merge",
    ),
    "system": Tier(
        "system and not (quick or interop or slow or clients or suite or spark)",
        ("tests/system", "tests/checker", "tests/simulation"),
        measures=True,
        real_time=True,
    ),
    "interop": Tier(
        "interop and not (quick or slow or clients or suite or spark)",
        ("tests/interop", "tests/differential", "tests/checker", "tests/spark"),
        real_time=True,
    ),
    "deep": Tier(
        "(slow or not (system or interop)) and not (clients or suite or spark)",
        profile="search",
        processes=1,
        longest_s=4 * 3600,
    ),
}

SUMMARY: Final = re.compile(rb"(\d+) (passed|failed|skipped|errors?|xfailed|warnings?)\b")


def parts(
    tier: Tier, arguments: list[str], modules: list[Path] | None = None, shares_each: int = SHARES
) -> list[Part]:
    """Pytest's arguments: first for what may run side by side, then for what measures.

    Args:
        tier: What is run.
        arguments: For pytest; they may name what of the tier.
        modules: These are divided among the processes beforehand.
        shares_each: In so many shares for each process.
    """
    # pytest's own watchdog is a thread for each test: a tenth of the time of thousands of units.
    watchdog = ["-o", "faulthandler_timeout=0"]
    limits = ["-p", "tests.unfinished", *watchdog, "--timeout", str(tier.longest_s)]
    if modules is not None:
        # Each process would write what it alone has seen, and remove what others have left.
        kept = 4 * tier.processes * (SHARES + 1)
        apart = ["-p", "no:cacheprovider", "-o", f"tmp_path_retention_count={kept}"]
        costs = [cost(module, TESTS) for module in modules]
        divided = shares(modules, costs, tier.processes * shares_each)
        return [[["-m", tier.markers, *limits, *apart, *map(str, each)] for each in divided]]
    named = any(Path(word.partition("::")[0]).exists() for word in arguments)
    where = [*arguments, *(() if named else tier.folders)]
    # In their order: xdist's own puts modules of one test last, and these are the longest.
    order = ["--dist", "loadfile", "--no-loadscope-reorder"]
    side_by_side = ["-n", str(tier.processes), *order] if tier.processes > 1 else []
    if not tier.measures:
        return [[["-m", tier.markers, *limits, *side_by_side, *where]]]
    return [
        [["-m", f"({tier.markers}) and not measures", *limits, *side_by_side, *where]],
        [["-m", f"({tier.markers}) and measures", *limits, *where]],
    ]


def on_both(arguments: list[str], *, of_each_change: bool = False) -> list[str]:
    """The arguments for the second path: what of the named tests reaches compiled modules.

    Args:
        arguments: For pytest; they may name what.
        of_each_change: Only what has a compiled subject, see `modules_on_both`.

    Returns:
        Empty if none of them does.
    """
    # Not above: it decides for this process which code is loaded.
    from tests.code_path import modules_on_both

    paths = {word: Path(word.partition("::")[0]).resolve() for word in arguments}
    named = {word: path for word, path in paths.items() if path.exists()}
    others = [word for word in arguments if word not in named]
    modules = modules_on_both(of_each_change=of_each_change)
    modules = [path.resolve() for path in modules]
    if not named:
        return [*others, *map(str, modules)]
    found: list[str] = []
    for word, path in named.items():
        below = [str(module) for module in modules if module.is_relative_to(path)]
        found += below if path.is_dir() else [word] * bool(below)
    return [*others, *found] if found else []


def run_twice(batches: list[Batch], silent_s: float, at_once: int = 1) -> list[End]:
    """As `run_batches`, and once more what failed, if that is little; see the top of the module."""
    with tempfile.TemporaryDirectory() as directory:
        noted = [Path(directory, str(index)) for index in range(len(batches))]
        for folder in noted:
            folder.mkdir()
        firsts = run_batches(
            [_noting(batch, folder) for batch, folder in zip(batches, noted, strict=True)],
            silent_s,
            at_once,
        )
        failed = [
            [test for file in sorted(folder.iterdir()) for test in file.read_text().splitlines()]
            for folder in noted
        ]
    by_path = {batch.path: (batch, tests) for batch, tests in zip(batches, failed, strict=True)}
    return [_tried_again(first, *by_path[first.path], silent_s) for first in firsts]


def _noting(batch: Batch, folder: Path) -> Batch:
    """That writes into a folder's files which tests failed."""

    def commands() -> list[list[str]]:
        return [
            ["-p", "tests.failed_tests", "--failed-to", str(folder / f"{index:02}"), *command]
            for index, command in enumerate(batch.commands())
        ]

    return batch._replace(commands=commands)


def _tried_again(first: End, batch: Batch, failed: list[str], silent_s: float) -> End:
    if first.code != FAILED or not 0 < len(failed) <= SECOND_TRIES_MAX:
        return first
    print(f"-- {first.path}: a second try, alone: {' '.join(failed)}", flush=True)
    command = batch.commands()[0]
    limits = command[command.index("-p") : command.index("--timeout") + 2]
    second = run([[*limits, *failed]], batch.profile, batch.path, batch.variable, silent_s)
    seconds = first.seconds + second.seconds
    if second.code:
        return first._replace(seconds=seconds)
    counts = count([first])
    counts["passed"] += len(failed)
    kept = ", ".join(f"{counts[kind]} {kind}" for kind in ("passed", "skipped") if counts[kind])
    return End(first.path, 0, kept.encode(), seconds, tuple(failed))


def run_tier(
    tier: Tier,
    arguments: list[str],
    profile: str,
    code: Callable[[], CodePath],
    is_compiled: Callable[[], bool] = lambda: True,
    *,
    is_check: bool = False,
) -> list[End]:
    """Run all parts of a tier, on one path or, where that is asked for, on both.

    Args:
        tier: What is run.
        arguments: For pytest; they may name what of the tier.
        profile: How much properties try.
        code: Says which code is there beside Python's, and may wait for it to be compiled.
        is_compiled: Whether it says so at once.
        is_check: Whether this is the check before a merge, which leaves nothing to another one.
    """
    of_each_change = bool(tier.later) and not is_check and not arguments
    if of_each_change:
        tier = tier._replace(markers=f"({tier.markers}) and not {tier.later}")
    silent_s = tier.longest_s + SILENT_S
    run_part = run_twice if tier.real_time else run_batches
    modules = fast_modules(TESTS) if tier.is_divided and not arguments else None
    whole = parts(tier, arguments, modules)
    if os.environ.get(VARIABLE) == "require" and code().modules:
        path, variable, on_both_paths = "compiled", "require", False
    else:
        path, variable, on_both_paths = "python", "off", tier.on_both

    def batch(part: Part) -> Batch:
        return Batch(lambda: part, profile, path, variable)

    def compiled() -> Part:
        again = on_both(arguments, of_each_change=of_each_change) if code().modules else []
        if not again:
            return []
        if modules is None:
            (part,) = parts(tier, again)
        else:
            chosen = set(again)
            (part,) = parts(tier, [], [each for each in modules if str(each) in chosen], 1)
        return part

    # Not more than one of what xdist has processes for.
    at_once = 1 if modules is None else tier.processes
    ends = [end for part in whole[:-1] for end in run_part([batch(part)], silent_s, at_once)]
    last = [batch(whole[-1])]
    if on_both_paths:
        last.append(Batch(compiled, tier.profile, "compiled", "require", is_compiled))
    return ends + run_part(last, silent_s, at_once)


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
        said.append(f"{path}: {results} in {minutes(sum(end.seconds for end in own))}")
    return "; ".join(said)


def minutes(seconds: float) -> str:
    """As people say them."""
    whole, rest = divmod(round(seconds), 60)
    return f"{whole}:{rest:02} min"


class Taken(NamedTuple):
    """What something has taken, or the time at which it began.

    Attributes:
        seconds: Of the clock.
        cpu_s: Of all cores, by processes that have ended.
    """

    seconds: float
    cpu_s: float

    @classmethod
    def until_now(cls) -> "Taken":
        """Since some time in the past."""
        return cls(time.monotonic(), sum(os.times()[:4]))

    def since(self, begin: "Taken") -> "Taken":
        """What was taken between the two."""
        return Taken(self.seconds - begin.seconds, self.cpu_s - begin.cpu_s)


def keep_times(seconds: dict[str, int]) -> None:
    """Seconds that each tier took, for `bench.structure` to tell."""
    TIMES.parent.mkdir(parents=True, exist_ok=True)
    known = json.loads(TIMES.read_text()) if TIMES.exists() else {}
    TIMES.write_text(json.dumps(known | seconds))


def main(arguments: list[str]) -> int:
    """Exit code 1 if any tier failed."""
    is_compiling = arguments[:1] == ["--compile"]
    arguments = arguments[is_compiling:]
    names = []
    while arguments and arguments[0] in TIERS:
        names.append(arguments.pop(0))
    tiers: dict[str, list[End]] = {}
    taken: dict[str, Taken] = {}
    with BuildBeside(os.environ, is_wanted=is_compiling) as build:

        def code() -> CodePath:
            build.wait()
            return prefer_compiled()

        try:
            if os.environ.get(VARIABLE, "auto") not in ("", "auto"):
                code()  # What is required, or no word that it knows, is known before any test.
            for name in names:
                print(f"-- {name} tests", flush=True)
                begin = Taken.until_now()
                tier, is_check = TIERS[name], len(names) > 1
                profile = "settled" if is_check else tier.profile
                tiers[name] = run_tier(
                    tier, arguments, profile, code, build.is_over, is_check=is_check
                )
                taken[name] = Taken.until_now().since(begin)
            path = code()
        except CompiledCodeError as error:
            print(f"tiers: {error}", file=sys.stderr)
            return 1
    print(f"-- hot path: {path.describe()}")
    total: Counter[str] = Counter()
    for name, ends in tiers.items():
        total += count(ends)
        in_all = f"in all {minutes(taken[name].seconds)}, {taken[name].cpu_s:.0f} s of CPU"
        code_of_all = worst(end.code for end in ends)
        print(f"-- {name}: {describe(ends)}; {in_all} (exit code {code_of_all})")
        for end in ends:
            for test in end.second_try:
                print(f"--   passed at the second try only: {test} ({end.path})")
    if not arguments:
        keep_times({name: round(each.seconds) for name, each in taken.items()})
    if len(names) > 1:
        print("=== " + ", ".join(f"{count} {kind}" for kind, count in total.items()) + " ===")
    has_failed = any(worst(end.code for end in ends) for ends in tiers.values())
    return 1 if has_failed or build.has_failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
