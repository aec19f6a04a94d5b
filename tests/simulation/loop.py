"""A seeded event loop: several processes, virtual time, one order of events for a seed.

    process     what dies and is paused as a whole: a broker, a client, the store's server
    handle      one callback of a process; those of one process run in the order in which they
                became ready, as in every event loop
    choice      which process runs its next handle is drawn by the seed
    arrival     what the network does at its time, without a turn of any process
    time        goes on with each handle by some microseconds, and jumps when nothing is ready

What a thread would do (`run_in_executor`, `tests.simulation.machine`) is an event of its process.
Each handle and arrival goes into the trace, whose hash two runs of a seed must share.
"""

import asyncio
import contextvars
import heapq
import zlib
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextlib import suppress
from itertools import count
from random import Random
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

HANDLE_S = 20e-6
"""A handle takes up to so long."""

THREAD_S = 2e-3
"""A call in a thread begins after up to half of this, and is noticed after up to the other half."""

TIMER_S = 1e-6
"""Added to each wait: a timer must not be early by a rounding."""

STEPS = 16
"""Handles between two looks at what a run waits for."""

SLOW_THREAD = 0.01
SLOW_THREAD_S = 0.05
"""So many of them take up to so long."""

PROCESS: contextvars.ContextVar["Process"] = contextvars.ContextVar("process")


MASK = (1 << 64) - 1

_CODES: dict[str, int] = {}
"""Of names of handles, for the trace: strings have another hash in each interpreter."""


class Process:
    """What dies and is paused as a whole. Nothing of a dead one ever runs again.

    Attributes:
        name: In the trace.
        ready: Handles that wait for their turn.
        is_paused: None of them runs, as after SIGSTOP.
        is_dead: None ever will.
        node_id: Of the broker whose process it is; 0: none's.
        rate: How fast its machine's clock runs; what it waits is counted by that.
        unseen: Handles of a broker that may run before the observer looks again.
    """

    __slots__ = (
        "code",
        "context",
        "is_dead",
        "is_paused",
        "name",
        "node_id",
        "rate",
        "ready",
        "unseen",
    )

    def __init__(self, name: str, *, node_id: int = 0, rate: float = 1.0) -> None:
        self.name = name
        self.node_id = node_id
        self.code = zlib.crc32(name.encode())
        self.rate = rate
        self.ready: deque[asyncio.Handle] = deque()
        self.is_paused = False
        self.is_dead = False
        self.unseen = 0
        self.context = contextvars.Context()
        self.context.run(PROCESS.set, self)


class Pollable(Protocol):
    """What has a descriptor: a stream, a listening socket."""

    def is_readable(self) -> bool:
        """Whether a read would not wait."""
        ...

    def is_writable(self) -> bool:
        """Whether a write would not wait."""
        ...


class _Watch:
    """A reader or writer of a descriptor."""

    __slots__ = ("args", "callback", "is_queued", "process")

    def __init__(
        self, process: Process, callback: Callable[..., object], args: tuple[object, ...]
    ) -> None:
        self.process = process
        self.callback = callback
        self.args = args
        self.is_queued = False


class _Handle(asyncio.Handle):
    """What asyncio's is, made without asking the loop whether it is in debug mode."""

    __slots__ = ()

    def __init__(
        self,
        callback: Callable[..., object],
        args: tuple[object, ...],
        loop: asyncio.AbstractEventLoop,
        context: contextvars.Context | None,
    ) -> None:
        self._context = contextvars.copy_context() if context is None else context
        self._loop = loop
        self._callback: Callable[..., object] | None = callback
        self._args = args
        self._cancelled = False
        self._repr = None
        self._source_traceback = None

    def cancel(self) -> None:
        self._cancelled = True
        self._callback = None
        self._args = None  # type: ignore[assignment]  # as asyncio does


class _Timer(asyncio.TimerHandle):
    """As `_Handle`; cancelled ones are dropped when they are due."""

    __slots__ = ()

    def __init__(
        self,
        when: float,
        callback: Callable[..., object],
        args: tuple[object, ...],
        loop: asyncio.AbstractEventLoop,
        context: contextvars.Context | None,
    ) -> None:
        _Handle.__init__(self, callback, args, loop, context)  # type: ignore[arg-type]  # as slots
        self._when = when
        self._scheduled = True

    def cancel(self) -> None:
        _Handle.cancel(self)  # type: ignore[arg-type]  # the same slots


class SimLoop(asyncio.AbstractEventLoop):
    """See the module.

    Attributes:
        random: The source of every choice.
        trace: Hash of the handles run so far.
        handles: How many that were.
        now_s: Virtual time.
        errors: Contexts given to the exception handler.
        observer: Called after each `observe_every` handles of a broker's process, with it.
        is_over: Set by whoever wants the run to look at its condition now.
        log: Gets a line for each handle, if given.
    """

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self._random = self.random.random
        self.trace = 0
        self.handles = 0
        self.errors: list[dict[str, Any]] = []
        self.observer: Callable[[Process], None] = lambda _process: None
        self.observe_every = 1
        self.log: Callable[[str], object] | None = None
        self.now_s = 1000.0
        self._timers: list[tuple[float, int, Any, Process | None]] = []
        self._order = count()
        self._ready: list[Process] = []
        self._pollables: dict[int, Pollable] = {}
        self._readers: dict[int, _Watch] = {}
        self._writers: dict[int, _Watch] = {}
        self._next_fd = count(1_000_000)
        self.is_over = False
        self.outside = Process("world")
        self.current = self.outside
        # What a dead process leaves is kept: collecting it would run its `finally` blocks.
        self.graveyard: list[object] = []

    # -- running ---------------------------------------------------------------------------------

    def run(self, until: Callable[[], bool], *, limit_s: float) -> bool:
        """Run until the condition holds (True), or for so much virtual time (False)."""
        end_s = self.now_s + limit_s
        before = events._get_running_loop()
        events._set_running_loop(None)
        events._set_running_loop(self)
        turn = self._turn
        try:
            while not until():
                if not turn(end_s):
                    return until()
            return True
        finally:
            events._set_running_loop(before)

    def run_for(self, duration_s: float) -> None:
        """Run for so much virtual time."""
        self.run(lambda: False, limit_s=duration_s)

    def _turn(self, end_s: float) -> bool:
        """Run up to STEPS handles; False: nothing happens any more before `end_s`."""
        timers, ready, random = self._timers, self._ready, self._random
        left = STEPS
        while left > 0 and not self.is_over:
            while timers and timers[0][0] <= self.now_s:
                when, _, due, owner = heapq.heappop(timers)
                if owner is None:
                    self.handles += 1
                    self.trace = (self.trace * 1_000_003 + int(when * 1e6)) & MASK
                    if self.log is not None:
                        self.log(f"{self.now_s:.6f} world {due.__qualname__}")
                    due()
                elif not due._cancelled:
                    self._enqueue(due, owner)
            # Those that have nothing to run, or must not, leave the list.
            while ready:
                place = int(random() * len(ready)) if len(ready) > 1 else 0
                process = ready[place]
                if process.ready and not process.is_dead and not process.is_paused:
                    break
                ready[place] = ready[-1]
                ready.pop()
            else:
                if not timers or timers[0][0] > end_s:
                    self.now_s = max(self.now_s, end_s)
                    return False
                self.now_s = max(self.now_s, timers[0][0])
                continue
            left -= 1
            handle = process.ready.popleft()
            if not handle._cancelled:
                self._run_one(process, handle)
        return True

    def _run_one(self, process: Process, handle: asyncio.Handle) -> None:
        callback: Any = handle._callback  # type: ignore[attr-defined]  # private
        self.now_s = now_s = self.now_s + self._random() * HANDLE_S
        self.handles += 1
        try:
            name = callback.__qualname__
        except AttributeError:
            name = _name_of(callback)
        code = _CODES.get(name)
        if code is None:
            code = _CODES[name] = zlib.crc32(name.encode())
        self.trace = (self.trace * 1_000_003 + int(now_s * 1e6) + code + process.code) & MASK
        if self.log is not None:
            self.log(f"{now_s:.6f} {process.name} {name}")
        self.current = process
        try:
            handle._context.run(callback, *handle._args)  # type: ignore[attr-defined]  # private
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001  because every loop hands it on
            self.call_exception_handler(
                {"message": f"Exception in callback {name}", "exception": error, "handle": handle}
            )
        finally:
            self.current = self.outside
        if process.node_id:
            process.unseen -= 1
            if process.unseen <= 0:
                process.unseen = self.observe_every
                self.observer(process)

    def _enqueue(self, handle: asyncio.Handle, process: Process) -> None:
        if process.is_dead:
            return
        if not process.ready and not process.is_paused:
            self._ready.append(process)
        process.ready.append(handle)

    def pause(self, process: Process) -> None:
        """Hold back everything of a process."""
        process.is_paused = True

    def resume(self, process: Process) -> None:
        """Let it go on."""
        if process.is_paused:
            process.is_paused = False
            if process.ready and process not in self._ready:
                self._ready.append(process)

    def kill(self, process: Process) -> None:
        """End a process: nothing of it runs any more."""
        process.is_dead = True
        self.graveyard.append(list(process.ready))
        process.ready.clear()
        for watches in (self._readers, self._writers):
            for fd in [fd for fd, watch in watches.items() if watch.process is process]:
                del watches[fd]

    def bury(self) -> None:
        """End everything, once nothing is to run any more: else the collector would."""
        before = events._get_running_loop()
        events._set_running_loop(self)
        try:
            ended: set[asyncio.Task[Any]] = set()
            # A `finally` block may begin tasks.
            while living := self._tasks() - ended:
                for task in living:
                    # And it may wait, which is an error by then.
                    with suppress(BaseException):
                        task.get_coro().close()
                ended |= living
        finally:
            events._set_running_loop(before)
        self._timers.clear()
        self._ready.clear()
        self.graveyard.clear()

    def _tasks(self) -> "set[asyncio.Task[Any]]":
        every: list[asyncio.Task[Any]] = [*asyncio.tasks._all_tasks]  # type: ignore[attr-defined]  # private
        return {task for task in every if task.get_loop() is self}

    def spawn(self, process: Process, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """A task of a process."""
        task: asyncio.Task[T] = process.context.copy().run(
            asyncio.Task, work, loop=self, context=process.context.copy()
        )
        task._log_destroy_pending = False  # type: ignore[attr-defined]  # private
        return task

    def within(self, process: Process, build: Callable[[], T]) -> T:
        """Build something outside of the run whose timers and callbacks are the process's."""
        before, self.current = self.current, process
        running = events._get_running_loop()
        events._set_running_loop(self)
        try:
            return process.context.copy().run(build)
        finally:
            events._set_running_loop(running)
            self.current = before

    def call_in(self, process: Process, callback: Callable[..., object], *args: Any) -> None:
        """Call back in a process."""
        self._enqueue(_Handle(callback, args, self, process.context), process)

    def call_in_later(
        self, delay_s: float, process: Process, callback: Callable[..., object], *args: Any
    ) -> asyncio.TimerHandle:
        """Call back in a process after a time."""
        return self._add_timer(self.now_s + delay_s, process, callback, args, process.context)

    def happen_in(self, delay_s: float, act: Callable[[], None]) -> None:
        """Let something happen after a time that no process does: bytes arrive."""
        heapq.heappush(self._timers, (self.now_s + delay_s, next(self._order), act, None))

    # -- what asyncio asks of a loop -------------------------------------------------------------

    def time(self) -> float:
        return self.now_s

    # Asked by each future and each handle of asyncio's: False, without a frame of Python.
    get_debug = staticmethod(bool)

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def _process_of(self, context: contextvars.Context | None) -> Process:
        if context is None:
            return self.current
        return context.get(PROCESS, self.outside)

    def call_soon(  # type: ignore[override]  # fewer types than asked
        self,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.Handle:
        handle = _Handle(callback, args, self, context)
        self._enqueue(handle, self._process_of(context))
        return handle

    def call_soon_threadsafe(  # type: ignore[override]  # fewer types than asked
        self,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def call_later(  # type: ignore[override]  # fewer types than asked
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        process = self._process_of(context)
        when = self.now_s + delay / process.rate + TIMER_S
        return self._add_timer(when, process, callback, args, context)

    def call_at(  # type: ignore[override]  # fewer types than asked
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        return self._add_timer(when, self._process_of(context), callback, args, context)

    def _add_timer(
        self,
        when: float,
        process: Process,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        context: contextvars.Context | None,
    ) -> asyncio.TimerHandle:
        handle = _Timer(when, callback, args, self, context)
        heapq.heappush(self._timers, (when, next(self._order), handle, process))
        return handle

    def create_future(self) -> "asyncio.Future[Any]":
        return asyncio.Future(loop=self)

    def create_task(
        self,
        coro: Generator[Any, None, T] | Coroutine[Any, Any, T],
        *,
        name: str | None = None,
        context: contextvars.Context | None = None,
    ) -> "asyncio.Task[T]":
        task: asyncio.Task[T] = asyncio.Task(coro, loop=self, name=name, context=context)
        task._log_destroy_pending = False  # type: ignore[attr-defined]  # private
        return task

    def run_in_executor(  # type: ignore[override]  # fewer types than asked
        self, executor: object, func: Callable[..., T], *args: Any
    ) -> "asyncio.Future[T]":
        """An event of the process, whatever the executor."""
        done: asyncio.Future[T] = self.create_future()

        def begin() -> None:
            try:
                result = func(*args)
            except BaseException as error:  # noqa: BLE001  because it is handed on
                self.call_later(self.thread_s() / 2, fail, error)
            else:
                self.call_later(self.thread_s() / 2, finish, result)

        def finish(result: T) -> None:
            if not done.done():
                done.set_result(result)

        def fail(error: BaseException) -> None:
            if not done.done():
                done.set_exception(error)

        self.call_later(self.thread_s() / 2, begin)
        return done

    def thread_s(self) -> float:
        """How long a call in a thread takes."""
        random = self.random
        longest = SLOW_THREAD_S if random.random() < SLOW_THREAD else THREAD_S
        return random.random() * longest

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if self.current.is_dead:
            return
        self.errors.append({**context, "process": self.current.name, "time": self.now_s})
        self.is_over = True

    async def shutdown_asyncgens(self) -> None:
        """There are none."""

    # -- descriptors -----------------------------------------------------------------------------

    def open_fd(self, pollable: Pollable) -> int:
        """A descriptor, never used before."""
        fd = next(self._next_fd)
        self._pollables[fd] = pollable
        return fd

    def close_fd(self, fd: int) -> None:
        """Forget it."""
        self._pollables.pop(fd, None)
        self._readers.pop(fd, None)
        self._writers.pop(fd, None)

    def add_reader(  # type: ignore[override]  # fewer types than asked
        self, fd: int, callback: Callable[..., object], *args: object
    ) -> None:
        self._readers[fd] = _Watch(self.current, callback, args)
        self.changed(fd)

    def remove_reader(self, fd: Any) -> bool:
        return self._readers.pop(fd, None) is not None

    def add_writer(  # type: ignore[override]  # fewer types than asked
        self, fd: int, callback: Callable[..., object], *args: object
    ) -> None:
        self._writers[fd] = _Watch(self.current, callback, args)
        self.changed(fd)

    def remove_writer(self, fd: Any) -> bool:
        return self._writers.pop(fd, None) is not None

    def changed(self, fd: int) -> None:
        """A descriptor may have become readable or writable: its watchers are called."""
        pollable = self._pollables.get(fd)
        if pollable is None:
            return
        watch = self._readers.get(fd)
        if watch is not None and not watch.is_queued and pollable.is_readable():
            watch.is_queued = True
            self.call_in(watch.process, self._readable, fd, watch)
        watch = self._writers.get(fd)
        if watch is not None and not watch.is_queued and pollable.is_writable():
            watch.is_queued = True
            self.call_in(watch.process, self._writable, fd, watch)

    def _readable(self, fd: int, watch: _Watch) -> None:
        self._ready_fd(fd, watch, self._readers)

    def _writable(self, fd: int, watch: _Watch) -> None:
        self._ready_fd(fd, watch, self._writers)

    def _ready_fd(self, fd: int, watch: _Watch, watches: dict[int, _Watch]) -> None:
        watch.is_queued = False
        if watches.get(fd) is watch:
            watch.callback(*watch.args)
            self.changed(fd)


def _name_of(callback: Any) -> str:
    task = getattr(callback, "__self__", None)
    if isinstance(task, asyncio.Task):
        return getattr(task.get_coro(), "__qualname__", "task")
    return type(callback).__name__
