"""Histories for tests: written by hand, or drawn from a model of a correct broker."""

import random
from typing import Any, Final

from tests.checker.history import Op

SHARE_DELIVERIES_MAX: Final = 5


class Script:
    """Operations one after the other; each takes one unit of time unless said otherwise."""

    def __init__(self) -> None:
        self.ops: list[Op] = []
        self._now = 0

    def add(
        self,
        proc: str,
        f: str,
        outcome: str = "ok",
        *,
        sends: list[tuple[str, str, int | None]] | None = None,
        polls: dict[str, list[tuple[int, str]]] | None = None,
        **value: Any,
    ) -> Op:
        """Append an operation."""
        begun = self._now
        self._now += 10
        op = Op(proc, len(self.ops), f, outcome, begun, None if outcome == "info" else begun + 5)
        op.sends = list(sends or ())
        op.polls = dict(polls or {})
        op.value = value
        self.ops.append(op)
        return op

    @property
    def now(self) -> int:
        """When the next operation begins."""
        return self._now

    def at_once(self, count: int = 2) -> None:
        """The last operations, and the next, are under way at the same time."""
        for op in self.ops[-(count - 1) :]:
            if op.completed_ns is not None:
                op.completed_ns = self._now + 5

    def send(self, proc: str, value: str, offset: int | None, outcome: str = "ok") -> Op:
        """One send to `t-0`."""
        return self.add(proc, "send", outcome, sends=[("t-0", value, offset)])

    def poll(self, proc: str, *read: tuple[int, str], **value: Any) -> Op:
        """One poll of `t-0`."""
        return self.add(proc, "poll", polls={"t-0": list(read)}, **value)

    def final(self, **keys: list[tuple[int, str]]) -> None:
        """The reader after the end; `t_0=...` is the key `t-0`."""
        named = {name.replace("_", "-"): read for name, read in keys.items()}
        self.add("final", "assign", keys=list(named))
        for key, read in named.items():
            self.add("final", "poll", polls={key: read}, final=True)
        ends = {key: [read[-1][0] + 1 if read else 0] * 2 for key, read in named.items()}
        self.add("final", "ends", keys=ends)


class Model:
    """A correct broker and its clients, drawn from a seed; `run` makes a clean history.

    Transactions interleave; a commit or an abort puts a marker into each log. A read_committed
    reader sees up to the first open transaction, and of aborted ones nothing. A share group gets
    the first key's records, each to one member at a time.
    """

    def __init__(self, seed: int, *, keys: int = 3, steps: int = 60) -> None:
        self._random = random.Random(seed)
        self.keys = [f"t-{index}" for index in range(keys)]
        self._steps = steps
        self._logs: dict[str, list[tuple[str, Op | None]]] = {key: [] for key in self.keys}
        self._script = Script()
        self._open: dict[str, Op] = {}
        self._hidden: set[int] = set()
        self._positions: dict[str, dict[str, int]] = {}
        self._count = 0
        self._job_position = 0
        self._job_committed = 0
        self._share_counts: dict[int, int] = {}
        self._share_done: set[int] = set()

    def run(self) -> list[Op]:
        """The history, completed and finally read."""
        draw = self._random
        self._script.add(
            "job", "pipeline", group="g", inputs=[self.keys[0]], outputs=[self.keys[-1]]
        )
        self._script.add(
            "m0", "sharing", group="s", keys=[self.keys[0]], deliveries_max=SHARE_DELIVERIES_MAX
        )
        moves = [self._begin, self._send, self._end, self._read, self._assign, self._plain]
        for _ in range(self._steps):
            draw.choice([*moves, self._job, self._ask, self._share, self._share, self._kill])()
        for proc in list(self._open):
            self._end(proc)
        while self._job():
            pass
        self._ask()
        while self._share():
            pass
        self._script.final(**{key.replace("-", "_"): self._visible(key, 0) for key in self.keys})
        ends = self._script.ops[-1].value["keys"]
        for key in self.keys:
            ends[key] = [len(self._logs[key])] * 2
        return self._script.ops

    def _value(self) -> str:
        self._count += 1
        return f"v{self._count}"

    def _append(self, key: str, value: str, op: Op | None) -> int:
        self._logs[key].append((value, op))
        return len(self._logs[key]) - 1

    def _begin(self) -> None:
        proc = f"txn{self._random.randrange(3)}"
        if proc not in self._open:
            self._open[proc] = self._script.add(proc, "txn", "info")

    def _send(self) -> None:
        if self._open:
            op = self._open[self._random.choice(sorted(self._open))]
            key, value = self._random.choice(self.keys[:-1]), self._value()
            known = self._random.random() < 0.8
            offset = self._append(key, value, op)
            op.sends.append((key, value, offset if known else None))

    def _end(self, proc: str | None = None) -> None:
        if not self._open:
            return
        proc = proc or self._random.choice(sorted(self._open))
        op = self._open.pop(proc)
        commit = self._random.random() < 0.7
        told = self._random.random() < 0.8
        if not commit:
            self._hidden.add(id(op))
        op.outcome = ("ok" if commit else "fail") if told else "info"
        op.completed_ns = self._script.add(proc, "crash").invoked_ns if told else None
        for key in sorted({key for key, _, _ in op.sends}):
            self._append(key, "", None)

    def _plain(self) -> None:
        key, value = self._random.choice(self.keys[:-1]), self._value()
        offset = self._append(key, value, None)
        told = self._random.random() < 0.8
        proc = f"send{self._random.randrange(2)}"
        outcome = "ok" if told else "info"
        self._script.add(proc, "send", outcome, sends=[(key, value, offset if told else None)])

    def _visible(self, key: str, start: int) -> list[tuple[int, str]]:
        still_open = {id(op) for op in self._open.values()}
        found = []
        for offset, (value, op) in enumerate(self._logs[key]):
            if op is not None and id(op) in still_open:
                break
            if offset >= start and value and (op is None or id(op) not in self._hidden):
                found.append((offset, value))
        return found

    def _assign(self) -> None:
        proc = f"read{self._random.randrange(3)}"
        keys = self._random.sample(self.keys, self._random.randint(1, len(self.keys)))
        self._positions[proc] = dict.fromkeys(keys, 0)
        self._script.add(proc, "assign", keys=keys)

    def _read(self) -> None:
        if not self._positions:
            return
        proc = self._random.choice(sorted(self._positions))
        polls = {}
        for key, position in self._positions[proc].items():
            read = self._visible(key, position)[: self._random.randint(1, 5)]
            if read:
                polls[key] = read
                self._positions[proc][key] = read[-1][0] + 1
        self._script.add(proc, "poll", polls=polls)

    def _job(self) -> bool:
        """One transaction of the pipeline; whether there was an input for it."""
        inputs = self._visible(self.keys[0], self._job_position)[:2]
        if not inputs:
            return False
        op = self._script.add("job", "txn", "fail", polls={self.keys[0]: inputs}, group="g")
        out = self.keys[-1]
        for _, value in inputs:
            name = f"{self._value()}|{value}"
            op.sends.append((out, name, self._append(out, name, op)))
        after = inputs[-1][0] + 1
        op.value["offsets"] = {self.keys[0]: after}
        if self._random.random() < 0.75:
            op.outcome = "ok"
            self._job_position = self._job_committed = after
        else:
            self._hidden.add(id(op))
            self._script.add("job", "seek", keys=[self.keys[0]])
        self._append(out, "", None)
        return True

    def _ask(self) -> None:
        said = self._job_committed or -1
        self._script.add("ask", "committed", group="g", offsets={self.keys[0]: said})

    def _share(self) -> bool:
        """One delivery of a few records, and what the member says; whether there were any."""
        draw, script, key = self._random, self._script, self.keys[0]
        found = [one for one in self._visible(key, 0) if one[0] not in self._share_done][:3]
        if not found:
            return False
        delivered = []
        for offset, value in found:
            self._share_counts[offset] = self._share_counts.get(offset, 0) + 1
            delivered.append((offset, value, self._share_counts[offset]))
        proc, now = f"m{draw.randrange(2)}", script.now
        script.add(proc, "deliver", group="s", deliveries={key: delivered}, since=now, previous=now)
        for offset, _, count in delivered:
            kind = draw.choice(("ACCEPT", "ACCEPT", "RELEASE", "REJECT", ""))
            told, taken = draw.random() < 0.8, draw.random() < 0.7
            if kind:
                outcome = "ok" if told and taken else "info"
                acks = [(offset, kind)]
                script.add(proc, "acknowledge", outcome, group="s", key=key, acks=acks)
            if (taken and kind in ("ACCEPT", "REJECT")) or count >= SHARE_DELIVERIES_MAX:
                self._share_done.add(offset)
        return True

    def _kill(self) -> None:
        """The broker is gone, and with it some counts."""
        self._script.add("nemesis", "kill", clean=True)
        for offset, count in self._share_counts.items():
            if count and self._random.random() < 0.3:
                self._share_counts[offset] = count - 1
