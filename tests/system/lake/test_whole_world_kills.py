"""Kills of everything that a lake job stands on, at random moments; somebody watches its table.

Broker, store, driver and workers are processes and the signal is SIGKILL; drivers and workers are
stopped by SIGSTOP, too, and wake up behind those that went on in their place. Producers write
transactions all the time. `--lake-kills N` says how many of each kind there are, `--lake-seed N`
repeats what was drawn; the machine's own timing is not repeated.
"""

import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.lake.settings.config import parse_job
from tests.fakes.lake.watcher import TableReader, Watcher
from tests.fakes.lake.world import Driver, World, is_alive, until

PROGRESS_S = 120.0
"""In which a job that nobody disturbs has to commit something."""


class Killer:
    """Draws victims and moments; see the module."""

    def __init__(self, world: World, watcher: Watcher, chance: random.Random) -> None:
        self.world, self.watcher, self.chance = world, watcher, chance
        self.driver = world.start_driver()
        self.done: Counter[str] = Counter()
        self.ended: Counter[str] = Counter()

    def pause(self, most_s: float) -> None:
        time.sleep(self.chance.uniform(0.0, most_s))

    def kept_alive(self) -> Driver:
        """The driver; started again, as a supervisor does, where it has ended by itself."""
        if self.driver.status is not None:
            said = self.driver.said()
            assert "Traceback" not in said, said
            self.ended[said.strip().splitlines()[-1][-300:]] += 1
            self.driver = self.world.start_driver()
        return self.driver

    def progress(self) -> None:
        """Wait until the driver has committed a batch."""
        driver, before = self.kept_alive(), self.driver.batches()

        def has_committed() -> bool:
            nonlocal driver, before
            if self.kept_alive() is not driver:
                driver, before = self.driver, 0
            return driver.batches() > before or bool(self.watcher.problems)

        until("a batch is committed", has_committed, PROGRESS_S)
        assert self.watcher.problems == []

    def worker(self) -> int:
        """One that lives, as soon as there is any."""
        found: list[int] = []

        def is_there() -> bool:
            found[:] = self.kept_alive().workers()
            return bool(found)

        until("there is a worker", is_there)
        return self.chance.choice(found)

    def run(self, kills: int) -> None:
        """So many of each: first without workers, which is quicker, then with them."""
        self._run([victim for victim in ("driver", "broker", "store") for _ in range(kills)])
        self.world.write_job(workers=2)
        self.kill_driver()
        few = max(1, kills // 10)
        self._run(["worker"] * kills + ["zombie driver", "zombie worker", "broker", "store"] * few)

    def _run(self, wanted: list[str]) -> None:
        self.chance.shuffle(wanted)
        self.progress()
        actions: dict[str, Callable[[], None]] = {
            "driver": self.kill_driver,
            "worker": self.kill_worker,
            "broker": lambda: self.world.kill_broker(self.chance.uniform(0, 1)),
            "store": lambda: self.world.kill_store(self.chance.uniform(0, 1)),
            "zombie driver": self.zombie_driver,
            "zombie worker": self.zombie_worker,
        }
        for victim in wanted:
            self.pause(1.5)
            actions[victim]()
            self.done[victim] += 1
            assert self.watcher.problems == []
            if self.chance.random() < 0.5:
                self.progress()

    def kill_driver(self) -> None:
        old = self.kept_alive()
        old.die()
        self.driver = self.world.start_driver()
        until("workers of a dead driver end", lambda: not old.left(), 30)

    def kill_worker(self) -> None:
        pid = self.worker()
        self.pause(0.5)
        if is_alive(pid):
            os.kill(pid, signal.SIGKILL)

    def zombie_driver(self) -> None:
        """It sleeps, another one goes on, it wakes up; then one of both is killed."""
        sleeper = self.kept_alive()
        os.kill(sleeper.pid, signal.SIGSTOP)
        self.driver = self.world.start_driver()
        try:
            self.progress()
        finally:
            os.kill(sleeper.pid, signal.SIGCONT)
        self.pause(4.0)
        sleeper.kill()

    def zombie_worker(self) -> None:
        """Its driver is killed while it sleeps; it wakes up behind the next one."""
        pid = self.worker()
        os.kill(pid, signal.SIGSTOP)
        old = self.driver
        old.die()
        self.driver = self.world.start_driver()
        self.progress()
        os.kill(pid, signal.SIGCONT)
        until("a worker without a driver ends", lambda: not is_alive(pid), 30)


def kill_everything(kind: str, root: Path, kills: int, seed: int) -> None:
    chance = random.Random(f"{seed} {kind}")
    began = time.monotonic()
    with World(kind, root, seed) as world:
        with Watcher(world) as watcher:
            killer = Killer(world, watcher, chance)
            try:
                killer.run(kills)
            finally:
                report(killer, kind, seed, began)
            world.producers.stop()
            killer.driver.kill()
            status, said = world.finish()
            assert status == 0, said
        assert watcher.problems == []
        logged = world.logged()
        config = parse_job(world.job.read_text())
        assert sorted(TableReader(config).look(whole=True) or ()) == logged.good
        bad = TableReader(config, quarantine=True).look(whole=True) or ()
        assert sorted((row.partition, row.offset) for row in bad) == logged.bad
        watcher.check(logged.good)
        assert watcher.problems == []
        reconciled = world.run_cli("reconcile")
        assert reconciled.returncode == 0, reconciled.stdout + reconciled.stderr
        assert world.producers.committed
        assert world.producers.aborted
        tell(f"{kind}: {len(logged.good)} rows, {len(logged.bad)} in quarantine: as in the log")


def report(killer: Killer, kind: str, seed: int, began: float) -> None:
    watcher = killer.watcher
    tell(
        f"{kind}, seed {seed}, store {killer.world.store.name}: killed {dict(killer.done)} in "
        f"{time.monotonic() - began:.0f} s; {watcher.looks} looks, {watcher.whole_looks} of them "
        f"whole, {watcher.missed} while the store was away; rows {watcher.rows}; "
        f"problems {watcher.problems}; drivers that ended by themselves: {dict(killer.ended)}"
    )


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    given: int | None = request.config.getoption("--lake-seed")
    return random.SystemRandom().randrange(1 << 32) if given is None else given


def test_everything_is_killed_once(kind: str, tmp_path: Path, seed: int) -> None:
    kill_everything(kind, tmp_path, 1, seed)


@pytest.mark.slow
def test_everything_is_killed_many_times(
    kind: str, tmp_path: Path, seed: int, request: pytest.FixtureRequest
) -> None:
    kills: int = request.config.getoption("--lake-kills")
    kill_everything(kind, tmp_path, kills, seed)


def tell(text: str) -> None:
    """Shown where a test fails, and by `pytest -s`."""
    sys.stderr.write(f"\n{text}\n")
    sys.stderr.flush()
