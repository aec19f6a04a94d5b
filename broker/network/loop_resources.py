"""Resources that all connections of one event loop share."""

from dataclasses import dataclass

from broker.network.frame_admission import FrameAdmission
from broker.network.iteration_end import IterationEnd
from broker.network.read_budget import ReadBudget
from broker.network.receive_buffers import ReceiveBuffers
from broker.network.response import ResponseMemory
from broker.network.stream import Poller
from storage.environment.clock import Clock

RECEIVE_BUFFER_SIZE = 256 * 1024
"""Bytes received at once. Fits the second-level cache, so what was received is parsed there."""


@dataclass(frozen=True, slots=True)
class LoopResources:
    """See the module.

    Attributes:
        poller: The event loop's readiness calls.
        clock: Monotonic time.
        receive_buffer: Where bytes of any connection are received first.
        buffers: Memory of frames that do not arrive whole.
        admission: Which of them are read on while it is short.
        responses: Bytes of answers that their peers have not taken.
        read_budget: Time for reading sockets in an iteration.
        iteration_end: Callbacks at the end of an iteration.
    """

    poller: Poller
    clock: Clock
    receive_buffer: memoryview
    buffers: ReceiveBuffers
    admission: FrameAdmission
    responses: ResponseMemory
    read_budget: ReadBudget
    iteration_end: IterationEnd

    @classmethod
    def of(
        cls,
        poller: Poller,
        clock: Clock,
        *,
        buffers: ReceiveBuffers,
        responses: ResponseMemory,
        iteration_end: IterationEnd,
        receive_buffer_size: int = RECEIVE_BUFFER_SIZE,
    ) -> "LoopResources":
        """The resources of a loop, with a receive buffer and a read budget of its own."""
        return cls(
            poller=poller,
            clock=clock,
            receive_buffer=memoryview(bytearray(receive_buffer_size)),
            buffers=buffers,
            admission=FrameAdmission(buffers, poller.call_soon, clock),
            responses=responses,
            read_budget=ReadBudget(poller.call_soon, clock),
            iteration_end=iteration_end,
        )
