"""`python -m bench.growth`: what a request costs the broker as partitions and connections grow.

Ten small Produce requests are under way, to ten partitions, whatever there is beside them: what
grows lies idle, or has its turn. CPU and instructions are the broker's own, of a request:

    partitions, idle       ten of them are written to
    partitions, in turn    all of them, one after the other; each once before, not counted
    connections, in turn   ten at a time, all of them one after the other; each once before
    connections, at once   all have a request under way when the broker looks: it was stopped
                           (SIGSTOP) while they were sent

Each begins when the broker rests. Where the machine counts no instructions, CPU alone says what is
flat: on a quiet machine.

Prints a table and writes `bench/results/<name>.json`, `.md` and `.png`.
"""

import argparse
import json
import resource
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from bench import wire
from bench.calibration import calibrate, machine_line
from bench.generator import run_apart
from bench.instructions import billions
from bench.node import KafkaNode, OwnedNode, VarveNode
from bench.process import cpu_seconds, end_on_sigterm

RESULTS: Final = Path(__file__).parent / "results"
SIZES: Final = (10, 1_000, 10_000)
IN_FLIGHT: Final = 10
REQUESTS: Final = 40_000
FLAT: Final = 1.2
"""Times the cost with ten: what counts as the same."""
SETTLE_LOOK_S: Final = 1.0
SETTLE_LOOKS_MAX: Final = 60
RESTS: Final = 0.03
"""Of a core, at most, of a broker that rests."""
TOPIC_PARTITIONS_MAX: Final = 1_000
RESERVED_DESCRIPTORS: Final = 1_200
"""What a broker keeps of its descriptors for other things, at most."""

_BATCH: Final = wire.record_batch([b"g" * 100])


@dataclass(frozen=True, slots=True)
class Point:
    """What a request costs with `size` of something.

    Attributes:
        kilo_instructions: None: they cannot be counted here.
    """

    series: str
    size: int
    cpu_us: float
    kilo_instructions: float | None


@dataclass(frozen=True, slots=True)
class _Cost:
    """Of a request."""

    cpu_s: float
    giga_instructions: float | None

    def point(self, series: str, size: int) -> Point:
        giga = self.giga_instructions
        return Point(series, size, self.cpu_s * 1e6, None if giga is None else giga * 1e6)


class _Client:
    """Connections, each with a topic's frames to send; one request of a connection at a time."""

    def __init__(self, node: OwnedNode, connections: int, stack: ExitStack) -> None:
        self.pid = node.pid
        self.sockets = []
        for _ in range(connections):
            one = socket.create_connection((node.host, node.port), timeout=120.0)
            stack.enter_context(one)
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.sockets.append(one)

    def send(self, frames: Sequence[bytes], count: int) -> None:
        """`count` requests, ten of them under way; the next connection and frame each time."""
        done = 0
        while done < count:
            turn = range(done, min(done + IN_FLIGHT, count))
            for number in turn:
                self.sockets[number % len(self.sockets)].sendall(frames[number % len(frames)])
            for number in turn:
                _receive(self.sockets[number % len(self.sockets)])
            done += len(turn)

    def send_at_once(self, node: OwnedNode, frames: Sequence[bytes], count: int) -> None:
        """As many under way as there are connections, sent while the broker is stopped."""
        done = 0
        while done < count:
            node.pause()
            try:
                for number, one in enumerate(self.sockets):
                    one.sendall(frames[number % len(frames)])
            finally:
                node.resume()
            for one in self.sockets:
                _receive(one)
            done += len(self.sockets)


def _receive(one: socket.socket) -> None:
    answer = wire.receive(one)
    topic_size = answer[6] - 1
    if answer[7 + topic_size + 5 :][:2] != b"\0\0":
        raise wire.WireError(f"Produce was refused: {answer.hex()}")


def _cost_of(pid: int, work: Callable[[int], None], count: int) -> _Cost:
    """Cost of a request when `work` sends `count` of them; a tenth of it comes first."""
    work(max(count // 10, 1))
    _settle(pid)
    cpu, before = cpu_seconds(pid), _instructions(pid)
    work(count)
    # What answering leaves to be done, like flushing, is small; the counters are read at once.
    after = _instructions(pid)
    return _Cost(
        (cpu_seconds(pid) - cpu) / count,
        None if before is None or after is None else (after - before) / count,
    )


def _settle(pid: int) -> None:
    """Wait until the broker rests: files are made and synced in the background after a first write.

    A thousand partitions' first writes cost it most of a second of CPU then; counted as the cost of
    the 40,000 requests that follow, they were two and a half times as dear as others.
    """
    for _ in range(SETTLE_LOOKS_MAX):
        before = cpu_seconds(pid)
        time.sleep(SETTLE_LOOK_S)
        if cpu_seconds(pid) - before <= RESTS * SETTLE_LOOK_S:
            return


def _instructions(pid: int) -> float | None:
    """Billions of them so far; None: they cannot be counted here."""
    try:
        return billions(pid)
    except OSError:
        return None


def _create(node: OwnedNode, size: int) -> list[bytes]:
    """Topics of `size` partitions in all; a frame for each partition."""
    frames = []
    with node.connect(timeout_s=600.0) as connection:
        for begin in range(0, size, TOPIC_PARTITIONS_MAX):
            topic = f"growth-{begin:05}"
            count = min(TOPIC_PARTITIONS_MAX, size - begin)
            wire.create_topics(connection, [topic], count)
            wire.wait_until_led(connection, topic, count, 600.0)
            frames += [wire.produce_frame(topic, index, _BATCH) for index in range(count)]
    return frames


def _measured(
    work: Callable[[_Client], list[Point]], node: OwnedNode, connections: int
) -> list[Point]:
    """`work` in a process of its own, with connections to the broker."""

    def main() -> list[Point]:
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        with ExitStack() as stack:
            return work(_Client(node, connections, stack))

    points: list[Point] = run_apart(None, main)
    return points


def partitions_grow(node: OwnedNode, size: int, requests: int) -> list[Point]:
    """Cost with `size` partitions, of which ten are written to, and of which all are."""
    frames = _create(node, size)

    def work(client: _Client) -> list[Point]:
        idle = _cost_of(node.pid, lambda count: client.send(frames[:IN_FLIGHT], count), requests)
        client.send(frames, size)
        turns = -(-requests // size) * size
        in_turn = _cost_of(node.pid, lambda count: client.send(frames, count), turns)
        return [idle.point("partitions, idle", size), in_turn.point("partitions, in turn", size)]

    return _measured(work, node, IN_FLIGHT)


def connections_grow(node: OwnedNode, size: int, requests: int) -> list[Point]:
    """Cost with `size` connections, ten of which have a request under way, or all."""
    frames = _create(node, IN_FLIGHT)

    def work(client: _Client) -> list[Point]:
        client.send(frames, size)
        in_turn = _cost_of(node.pid, lambda count: client.send(frames, count), requests)
        at_once = _cost_of(
            node.pid,
            lambda count: client.send_at_once(node, frames, count),
            -(-requests // size) * size,
        )
        return [
            in_turn.point("connections, in turn", size),
            at_once.point("connections, at once", size),
        ]

    return _measured(work, node, size)


@contextmanager
def _started(kind: type[OwnedNode], directory: Path) -> Iterator[OwnedNode]:
    node = kind(Path(tempfile.mkdtemp(prefix="growth-", dir=directory)))
    node.start()
    try:
        yield node
    finally:
        node.stop()
        shutil.rmtree(node.directory, ignore_errors=True)


def times_the_first(points: Sequence[Point]) -> dict[tuple[str, int], tuple[float, float | None]]:
    """CPU and instructions of each as a multiple of its series' smallest size."""
    first: dict[str, Point] = {}
    for point in sorted(points, key=lambda point: point.size):
        first.setdefault(point.series, point)
    return {
        (point.series, point.size): (
            point.cpu_us / first[point.series].cpu_us,
            _times(point.kilo_instructions, first[point.series].kilo_instructions),
        )
        for point in points
    }


def _times(value: float | None, first: float | None) -> float | None:
    return None if value is None or first is None else value / first


def _shown(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def table(points: Sequence[Point]) -> str:
    """A Markdown table; what is above `FLAT` is marked: in instructions, else in CPU."""
    lines = [
        "| what grows | size | CPU us | times | 1e3 instructions | times | flat |",
        "|---|--:|--:|--:|--:|--:|---|",
    ]
    times = times_the_first(points)
    for point in points:
        cpu, instructions = times[point.series, point.size]
        verdict = "yes" if (cpu if instructions is None else instructions) <= FLAT else "**no**"
        lines.append(
            f"| {point.series} | {point.size:,} | {point.cpu_us:.1f} | {cpu:.2f} "
            f"| {_shown(point.kilo_instructions, '.1f')} | {_shown(instructions, '.2f')} "
            f"| {verdict} |"
        )
    return "\n".join(lines) + "\n"


def plot(points: Sequence[Point], path: Path) -> None:
    """Cost over size, a line a series; the shaded band is what counts as flat."""
    import matplotlib as mpl  # heavy: only this function needs it

    mpl.use("Agg")
    import matplotlib.pyplot as plt  # heavy: only this function needs it

    figure, panels = plt.subplots(1, 2, figsize=(10, 4), sharex=True)
    times = times_the_first(points)
    for place, (axes, title) in enumerate(zip(panels, ("CPU", "instructions"), strict=True)):
        for series in dict.fromkeys(point.series for point in points):
            own = [point for point in points if point.series == series]
            sizes = [point.size for point in own]
            shown = [times[series, size][place] for size in sizes]
            axes.plot(
                sizes,
                [float("nan") if value is None else value for value in shown],
                "o-",
                label=series,
            )
        axes.axhspan(1 / FLAT, FLAT, color="black", alpha=0.08)
        axes.set_xscale("log")
        axes.set_ylim(bottom=0)
        axes.set_title(f"{title} of a request, times that with the fewest")
    panels[0].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _by_series(point: Point) -> str:
    return point.series


def _write(points: Sequence[Point], calibrations: Sequence[Mapping[str, float]], name: str) -> str:
    RESULTS.mkdir(parents=True, exist_ok=True)
    kept = {"calibration": list(calibrations), "points": [asdict(point) for point in points]}
    (RESULTS / f"{name}.json").write_text(json.dumps(kept, indent=1) + "\n")
    text = f"{machine_line(calibrations)}\n\n{table(points)}"
    (RESULTS / f"{name}.md").write_text(text)
    plot(points, RESULTS / f"{name}.png")
    return text


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.growth", description=__doc__)
    parser.add_argument("--broker", choices=["varve", "kafka"], default="varve")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="comma-separated")
    parser.add_argument("--requests", type=int, default=REQUESTS, help="of each figure")
    parser.add_argument("--only", choices=["partitions", "connections"])
    parser.add_argument("--name", default="growth", help="of the files in bench/results")
    parser.add_argument("--directory", type=Path, help="where brokers keep their data")
    return parser


def connections_allowed(wanted: int) -> int:
    """As many connections as the system's limit of open files lets a broker have, at most `wanted`.

    A broker gives half of its descriptors to connections, some are reserved before; the limit is
    raised where it may be.
    """
    needed = 2 * wanted + RESERVED_DESCRIPTORS
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most == resource.RLIM_INFINITY:
        return wanted
    if most < needed:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (needed, needed))
            most = needed
    return min(wanted, (most - RESERVED_DESCRIPTORS) // 2)


def main() -> int:
    """Measure, print the table, write the files."""
    end_on_sigterm()
    arguments = _parser().parse_args()
    kind = {"varve": VarveNode, "kafka": KafkaNode}[arguments.broker]
    base = arguments.directory or Path(tempfile.gettempdir())
    points: list[Point] = []
    calibrations = []
    text = ""
    for what, grows in (("partitions", partitions_grow), ("connections", connections_grow)):
        for wanted in map(int, arguments.sizes.split(",")):
            size = connections_allowed(wanted) if what == "connections" else wanted
            if size < wanted:
                print(f"only {size:,} connections: `ulimit -Hn` does not allow more", flush=True)
            if arguments.only in {None, what}:
                calibrations.append(calibrate(base).as_dict())
                with _started(kind, base) as node:
                    points += grows(node, size, arguments.requests)
                text = _write(sorted(points, key=_by_series), calibrations, arguments.name)
                print(f"{time.strftime('%H:%M:%S')} {what} {size:,} measured", flush=True)
    print(f"\n{text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
