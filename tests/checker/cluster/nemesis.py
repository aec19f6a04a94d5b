"""Faults for a cluster at work: a random few every few seconds, and what is noted of them."""

import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Final

from tests.checker.cluster.faults import CLUSTER_FAULTS, CUTS, ClusterFaults
from tests.checker.faults.nemesis import FREEZE_S, Clients
from tests.checker.history import Recorder

ROUND_S: Final = (2.0, 6.0)
COUNTS: Final = (0, 1, 1, 1, 2, 2, 3)
"""How many faults a round begins with; none at all is one of the choices."""

CLIENT_FAULTS: Final = ("clients", "freeze")
TICK_S: Final = 0.1
SETTLED_S: Final = 8.0
"""For so long after a fault leaders may still move."""

GROUPS: Final = {
    "kill": tuple(name for name in CLUSTER_FAULTS if name.startswith("kill-")),
    "pause": tuple(name for name in CLUSTER_FAULTS if name.startswith("pause-")),
    "cut": CUTS,
    "operate": ("restart", "elect"),
}
"""Short names for many faults."""


def expand(names: tuple[str, ...]) -> tuple[str, ...]:
    """Faults by their own names.

    Raises:
        ValueError: There is no such fault.
    """
    found: dict[str, None] = {}
    for name in names:
        for one in GROUPS.get(name, (name,)):
            if one not in CLUSTER_FAULTS and one not in CLIENT_FAULTS:
                raise ValueError(name)
            found[one] = None
    return tuple(found)


class ClusterNemesis:
    """Draws faults and has them done.

    Attributes:
        done: How often each was struck.
        disturbed: Begin and end of each time with faults, in ns of the monotonic clock.
        served: The same of times in which a majority lived, without the first seconds of each,
            which failover takes.
    """

    def __init__(
        self,
        faults: ClusterFaults,
        clients: Clients | None,
        *,
        names: tuple[str, ...],
        seed: int,
        recorder: Recorder | None = None,
        say: Callable[[str], None] | None = None,
    ) -> None:
        self.faults = faults
        self._clients = clients
        self._names = names
        self._random = random.Random(seed)
        self._recorder = recorder
        self._say = _say if say is None else say
        self._unsettled_until = 0.0
        self.disturbed: list[tuple[int, int]] = []
        self.served: list[tuple[int, int]] = []
        self._whole_since_ns: int | None = None
        self._clients_done: Counter[str] = Counter()

    @property
    def done(self) -> Counter[str]:
        """Of the cluster and of clients."""
        return self.faults.done + self._clients_done

    def run_until(self, end: float) -> None:
        """Faults until a time of the monotonic clock; what lasts then is healed by `heal`."""
        while time.monotonic() < end:
            wanted = min(self._random.choice(COUNTS), len(self._names))
            chosen = self._random.sample(self._names, wanted)
            self._say(f"  {end - time.monotonic():4.0f} s left: {chosen or 'nothing'}")
            round_end = min(end, time.monotonic() + self._random.uniform(*ROUND_S))
            begin_ns = time.monotonic_ns()
            for name in chosen:
                self._rest(self._random.uniform(0.0, 1.0))
                self._strike(name)
            while time.monotonic() < round_end:
                self._rest(TICK_S)
            if chosen:
                self.disturbed.append((begin_ns, time.monotonic_ns()))

    def _strike(self, name: str) -> None:
        if name == "clients":
            if self._clients is not None:
                self._clients.kill_one()
                self._clients_done[name] += 1
        elif name == "freeze":
            if self._clients is not None:
                frozen = self._clients.freeze_one(self._random.uniform(*FREEZE_S))
                self._clients_done[name] += frozen
        elif self.faults.strike(name):
            self.moving_until(time.monotonic() + SETTLED_S)

    def _rest(self, seconds: float) -> None:
        """Let time pass, and look after all that is to be looked after."""
        end = time.monotonic() + seconds
        while True:
            self.faults.tend()
            if self._clients is not None:
                self._clients.watch()
            self._note()
            left = end - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(TICK_S, left))

    def moving_until(self, at: float) -> None:
        """Leaders may move until then, by what is no fault of `faults`."""
        self._unsettled_until = max(self._unsettled_until, at)

    def _note(self) -> None:
        """Who was given what may be forgotten whenever a leader may move."""
        if self.faults.is_struck:
            self.moving_until(time.monotonic() + SETTLED_S)
        self._note_majority()
        if self._recorder is not None and time.monotonic() < self._unsettled_until:
            self._recorder.note("kill", clean=False)

    def _note_majority(self) -> None:
        if self.faults.has_majority():
            if self._whole_since_ns is None:
                self._whole_since_ns = time.monotonic_ns()
            return
        self._end_window()

    def _end_window(self) -> None:
        since_ns, self._whole_since_ns = self._whole_since_ns, None
        if since_ns is None:
            return
        begin_ns, end_ns = since_ns + int(SETTLED_S * 1e9), time.monotonic_ns()
        if begin_ns < end_ns:
            self.served.append((begin_ns, end_ns))

    def heal(self) -> None:
        """Nothing is wrong any more."""
        self._end_window()
        self.faults.heal()


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
