"""A follower's Fetch that waits for records, `max_wait_ms` at most; one for each session."""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.requests.reply import Body, Reply
    from broker.runtime.timer import Timer


class ParkedFetch:
    """See the module."""

    __slots__ = ("_make_answer", "_on_left", "_reply", "_timer_handle")

    def __init__(
        self,
        reply: "Reply",
        timer: "Timer",
        wait_ms: float,
        make_answer: "Callable[[bool], Body | None]",
        on_left: Callable[[], None],
    ) -> None:
        """Wait.

        Args:
            reply: Its place among the connection's answers.
            timer: For its time.
            wait_ms: Its time.
            make_answer: The answer, None while there is too little; always one when forced.
            on_left: Called once, when it waits no longer.
        """
        self._reply = reply
        self._make_answer = make_answer
        self._on_left = on_left
        self._timer_handle = timer.call_later_ms(wait_ms, self.answer)
        reply.when_abandoned(self._leave)

    def try_again(self) -> None:
        """Answer if there is enough by now."""
        body = self._make_answer(False)
        if body is not None:
            self._leave()
            self._reply.send(body)

    def answer(self) -> None:
        """Answer with what there is: its time is over."""
        body = self._make_answer(True)
        assert body is not None
        self._leave()
        self._reply.send(body)

    def answer_with(self, body: "Body") -> None:
        """Answer with `body`: the follower has sent its next request."""
        self._leave()
        self._reply.send(body)

    def _leave(self) -> None:
        self._timer_handle.cancel()
        self._on_left()
