"""Faults for a running workload: a random few of those allowed, drawn anew every few seconds.

    kill     the broker, with SIGKILL; it is started again at once
    pause    the broker, with SIGSTOP, for up to four seconds
    clients  one or two client processes, with SIGKILL; successors take their places
    freeze   a client process, with SIGSTOP, for longer than its session lasts: a zombie wakes up
    proxy    everything between clients and broker: late, slow, lost, cut

None at all is one of the choices: what breaks is often the recovery.
"""

import contextlib
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Final, Protocol

from tests.checker.history import Recorder
from tests.fakes.network.fault_proxy import ProxyProcess

FAULTS: Final = ("kill", "pause", "clients", "freeze", "proxy")
ROUND_S: Final = (2.0, 6.0)
FREEZE_S: Final = (7.0, 11.0)
DELAYED_S: Final = 8.0
"""For so long after a bad network its answers may still be under way."""

PROXY_FAULTS: Final[tuple[dict[str, Any], ...]] = (
    {"to_broker": {"delay_ms": [5, 80]}, "to_client": {"delay_ms": [5, 80]}},
    {"to_client": {"black_hole": True}},
    {"to_broker": {"black_hole": True}},
    {"to_broker": {"bytes_per_s": 20_000}, "to_client": {"bytes_per_s": 100_000}},
    {"requests": [{"action": "lose_answer", "share": 0.05}]},
    {"requests": [{"action": "reset_after", "share": 0.05}]},
    {"requests": [{"action": "reset", "share": 0.05}]},
    {"requests": [{"action": "half_close", "share": 0.05}]},
    {"requests": [{"action": "delay", "share": 0.1, "delay_ms": [50, 1500]}]},
    {"refuse": True},
)


class Clients(Protocol):
    """Client processes that faults are done to."""

    def kill_one(self) -> None:
        """SIGKILL, and a successor."""

    def freeze_one(self, seconds: float) -> bool:
        """SIGSTOP until so much later; False when too many are frozen."""

    def watch(self) -> None:
        """Look after them."""

    def all_work(self) -> bool:
        """Whether each has had a success."""


class Broker(Protocol):
    """What faults are done to: one broker, or several as one."""

    @property
    def pid(self) -> int:
        """Of the process that is paused."""

    @property
    def is_running(self) -> bool:
        """Whether nothing is to be started."""

    def kill(self) -> None:
        """SIGKILL."""

    def start(self) -> float:
        """Start what was killed."""


class Nemesis:
    """Draws faults and does them; `heal` ends all."""

    def __init__(
        self,
        node: Broker,
        proxy: ProxyProcess | None,
        clients: "Clients",
        *,
        faults: tuple[str, ...],
        seed: int,
        share: float = 0.45,
        recorder: Recorder | None = None,
    ) -> None:
        self._node = node
        self._proxy = proxy
        self._clients = clients
        self._faults = faults
        self._share = share
        self._random = random.Random(seed)
        self._recorder = recorder
        self._clean_from = 0.0
        self.done: Counter[str] = Counter()
        self.disturbed: list[tuple[int, int]] = []
        """Begin and end of each round that had faults, in ns of the monotonic clock."""

    def run_until(self, end: float) -> None:
        """Faults until a time of the monotonic clock."""
        watch = self._clients.watch
        while time.monotonic() < end:
            chosen = [fault for fault in self._faults if self._random.random() < self._share]
            sys.stderr.write(f"  {end - time.monotonic():4.0f} s left: {chosen or 'nothing'}\n")
            begin_ns = time.monotonic_ns()
            round_end = min(end, time.monotonic() + self._random.uniform(*ROUND_S))
            if "proxy" in chosen and self._proxy is not None:
                self._disturb()
            for fault in self._random.sample(chosen, len(chosen)):
                self._rest(self._random.uniform(0.0, 1.0), watch)
                if fault == "kill":
                    self._kill()
                elif fault == "pause":
                    self._pause(watch)
                elif fault == "freeze":
                    frozen_s = self._random.uniform(*FREEZE_S)
                    self.done["freeze"] += self._clients.freeze_one(frozen_s)
                elif fault == "clients":
                    for _ in range(self._random.randint(1, 2)):
                        self._clients.kill_one()
                        self.done["clients"] += 1
            while time.monotonic() < round_end:
                self._rest(0.2, watch)
            if "proxy" in chosen and self._proxy is not None:
                self._proxy.set_faults({})
                self._clean_from = time.monotonic() + DELAYED_S
            if chosen:
                self.disturbed.append((begin_ns, time.monotonic_ns()))

    def _rest(self, seconds: float, watch: Callable[[], None]) -> None:
        time.sleep(seconds)
        watch()

    def _kill(self) -> None:
        self._node.kill()
        self.done["kill"] += 1
        if self._recorder is not None:
            self._recorder.note("kill", clean=time.monotonic() >= self._clean_from)
        time.sleep(self._random.uniform(0.0, 1.0))
        self._node.start()

    def _pause(self, watch: Callable[[], None]) -> None:
        os.kill(self._node.pid, signal.SIGSTOP)
        self.done["pause"] += 1
        try:
            self._rest(self._random.uniform(0.2, 4.0), watch)
        finally:
            os.kill(self._node.pid, signal.SIGCONT)

    def _disturb(self) -> None:
        assert self._proxy is not None
        self._clean_from = float("inf")
        faults = self._random.choice(PROXY_FAULTS)
        self._proxy.set_faults(faults)
        self.done["proxy"] += 1
        if self._random.random() < 0.4:
            self._proxy.sever(self._random.choice(("reset", "close", "half_close")))

    def heal(self) -> None:
        """Nothing is wrong any more."""
        if self._proxy is not None:
            self._proxy.set_faults({})
        if not self._node.is_running:
            self._node.start()
        else:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._node.pid, signal.SIGCONT)
