"""The history: what clients tried, when, and what came of it; one JSON object per line.

    {"i": 7, "t": 123, "proc": "txn-0.2", "type": "invoke", "f": "txn", "value": {...}}
    {"i": 7, "t": 456, "proc": "txn-0.2", "type": "ok",     "f": "txn", "value": {...}}

`t` is the machine's monotonic clock in ns, one clock for all processes. A completion carries the
number of its invocation. What is never completed - its process was killed - is `info`, as is every
time-out and every lost connection: only a definite refusal is `fail`.

    f           value
    send, txn   sends [[key, value, offset or null], ...], polls {key: [[offset, value], ...]},
                and with a group: group, offsets {key: offset}
    poll        polls; `final` is true for the reader after the end
    assign      keys, read from their beginning
    seek        keys whose position is another one now; also what a rebalance does
    commit      group, offsets: by a consumer, without a transaction
    committed   group, offsets: what the broker says is committed
    pipeline    group, inputs, outputs: a job that writes one output for each input
    ends        {key: [last stable offset, log end offset]}, after the end
    sharing     group, keys, deliveries_max: a share group that reads keys from their beginning
    deliver     group, deliveries {key: [[offset, value, delivery count], ...]}: to a member of a
                share group; `since`, when they can have been acquired at the earliest; `previous`,
                when the member's poll before was begun
    acknowledge group, key, acks [[offset, ACCEPT, RELEASE or REJECT], ...]
    kill        the broker was killed; `clean` when no answer of it was under way for long

A key is a partition, written `topic-0`. Values are strings, each sent to its key once in a history;
the output of a pipeline is `own name|value of the input`.
"""

import json
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

OUTCOMES: Final = ("ok", "fail", "info")

Send = tuple[str, str, int | None]
"""Key, value, offset if the broker told it."""

Polls = dict[str, list[tuple[int, str]]]
"""By key: offsets and values in the order they were read."""


@dataclass(slots=True, eq=False)
class Op:
    """An operation with its outcome."""

    proc: str
    i: int
    f: str
    outcome: str = "info"
    invoked_ns: int = 0
    completed_ns: int | None = None
    sends: list[Send] = field(default_factory=list)
    polls: Polls = field(default_factory=dict)
    value: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """How reports call it."""
        return f"{self.proc}#{self.i}"


class HistoryError(ValueError):
    """The lines are no history."""


class Recorder:
    """Writes one process's part of the history; a line is with the kernel when a call returns."""

    def __init__(self, path: Path, proc: str) -> None:
        self.proc = proc
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._count = 0

    def close(self) -> None:
        """No more lines."""
        os.close(self._file)

    def _write(self, i: int, kind: str, f: str, value: dict[str, Any]) -> None:
        line = {
            "i": i,
            "t": time.monotonic_ns(),
            "proc": self.proc,
            "type": kind,
            "f": f,
            "value": value,
        }
        os.write(self._file, json.dumps(line, separators=(",", ":")).encode() + b"\n")

    def invoke(self, f: str, **value: Any) -> int:
        """Say what is tried; returns the number for `complete`."""
        i = self._count
        self._count += 1
        self._write(i, "invoke", f, value)
        return i

    def complete(self, i: int, outcome: str, f: str, **value: Any) -> None:
        """Say what came of it; values not given stay those of the invocation."""
        self._write(i, outcome, f, value)

    def note(self, f: str, **value: Any) -> None:
        """Something that has happened, without an invocation."""
        i = self._count
        self._count += 1
        self._write(i, "ok", f, value)


def read_lines(paths: Iterable[Path]) -> Iterator[dict[str, Any]]:
    """All lines of all files; the cut-off last line of a killed process is left out.

    So is the file of a process that was killed before it wrote one.
    """
    for path in paths:
        if not path.exists():
            continue
        data = path.read_bytes()
        for line in data[: data.rfind(b"\n") + 1].splitlines():
            yield json.loads(line)


def pair(lines: Iterable[dict[str, Any]]) -> list[Op]:
    """Invocations and completions as operations, in the order of their first lines.

    Raises:
        HistoryError: A completion of another kind than its invocation, or a second one.
    """
    found: dict[tuple[str, int], Op] = {}
    for line in sorted(lines, key=lambda one: one["t"]):
        identity = (line["proc"], line["i"])
        op = found.get(identity)
        if op is None:
            op = found[identity] = Op(line["proc"], line["i"], line["f"], invoked_ns=line["t"])
        elif op.completed_ns is not None or line["type"] == "invoke" or line["f"] != op.f:
            raise HistoryError(f"{op.name}: second {line['type']} of {line['f']}")
        if line["type"] != "invoke":
            op.outcome = line["type"]
            op.completed_ns = line["t"]
            if op.outcome not in OUTCOMES:
                raise HistoryError(f"{op.name}: unknown outcome {op.outcome}")
        _take_value(op, line["value"])
    return list(found.values())


def _take_value(op: Op, value: dict[str, Any]) -> None:
    for name, content in value.items():
        if name == "sends":
            op.sends = [(key, sent, offset) for key, sent, offset in content]
        elif name == "polls":
            op.polls = {key: [(o, v) for o, v in read] for key, read in content.items()}
        else:
            op.value[name] = content


def read_history(paths: Iterable[Path]) -> list[Op]:
    """The history that processes wrote to their files."""
    return pair(read_lines(paths))
