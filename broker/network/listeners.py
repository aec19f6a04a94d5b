"""The listeners of a broker: each an acceptor and its processors. They come and go at run time.

    listeners=A://h:1            A: acceptor ──> processors 0 .. num.network.threads - 1
    listeners=A://h:1,B://h:2    B is bound and accepts; A is not touched
    listeners=A://h:3,B://h:2    A is bound again; its connections stay
    listeners=A://h:3            B is closed, and so are its connections

An address that cannot be bound leaves everything as it was, and is an alert until listeners are
applied that can. With fewer `num.network.threads` the processors too many get no new connections,
and go when their last one has.

Source of the shape: Kafka, SocketServer.scala (DataPlaneAcceptor), DynamicBrokerConfig.scala
(DynamicListenerConfig), where a listener keeps its address until a restart.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence

from broker.network.acceptor import Acceptor
from broker.network.network import Listening
from broker.network.processor import Processor
from config.listeners import Listener
from storage.environment.alerts import AlertKind, Alerts

LOGGER = logging.getLogger(__name__)

PROCESSORS_MAX = 256
"""Of a listener. They spread bookkeeping, not work: more of them would be memory for nothing."""

MakeProcessor = Callable[[str, int], Processor]
"""A processor of a listener, by the listener's name and its own number in it."""

MakeAcceptor = Callable[[str, Listening, Sequence[Processor]], Acceptor]
"""An acceptor of a listener: its name, its socket, and the processors of its connections."""


class OpenListener:
    """A listener that is bound.

    Attributes:
        listener: As configured; its port may be 0.
        acceptor: Of its socket.
        processors: Those that get new connections; the acceptor reads this very list.
        retired: Processors that get none, and have some left.
    """

    __slots__ = ("acceptor", "listener", "processors", "retired")

    def __init__(self, listener: Listener, acceptor: Acceptor, processors: list[Processor]) -> None:
        self.listener = listener
        self.acceptor = acceptor
        self.processors = processors
        self.retired: list[Processor] = []

    def resize(self, count: int, make: MakeProcessor) -> None:
        """Have `count` processors, at least one and no more than `PROCESSORS_MAX`."""
        count = min(count, PROCESSORS_MAX)
        while len(self.processors) > count:
            self.retired.append(self.processors.pop())
        while len(self.processors) < count:
            number = len(self.processors)
            again = next((one for one in self.retired if one.index == number), None)
            if again is None:
                again = make(self.listener.name, number)
            else:
                self.retired.remove(again)
            self.processors.append(again)

    def all_processors(self) -> Iterator[Processor]:
        """Processors with connections, and those that may get some."""
        self.retired = [one for one in self.retired if one.connections]
        yield from self.processors
        yield from self.retired

    def close(self, reason: str) -> None:
        """Stop accepting, close the connections."""
        self.acceptor.close()
        for processor in self.all_processors():
            for connection in list(processor.connections):
                connection.close(reason)


class Listeners:
    """See the module. Runs on the loop's thread."""

    def __init__(
        self,
        *,
        bind: Callable[[Listener], Listening],
        make_processor: MakeProcessor,
        make_acceptor: MakeAcceptor,
        alerts: Alerts,
    ) -> None:
        """Bind nothing yet.

        Args:
            bind: A listening socket; raises OSError.
            make_processor: See there.
            make_acceptor: See there.
            alerts: Gets an alert when an address cannot be bound.
        """
        self._bind = bind
        self._make_processor = make_processor
        self._make_acceptor = make_acceptor
        self._alerts = alerts
        self._open: dict[str, OpenListener] = {}
        self._unbound: set[str] = set()

    def open_all(self, wanted: Sequence[Listener], processors: int) -> None:
        """Bind all, then accept on all.

        Raises:
            OSError: An address is taken or not ours; nothing is left listening.
        """
        try:
            for listener in wanted:
                self._add(listener, processors)
        except OSError:
            self.close()
            raise
        for one in self._open.values():
            one.acceptor.start()

    def apply(self, wanted: Sequence[Listener], processors: int) -> None:
        """Open and close listeners as configured; connections of those that stay are kept."""
        names = {listener.name for listener in wanted}
        for name in [name for name in self._open if name not in names]:
            self._open.pop(name).close("its listener was taken away")
            LOGGER.info("listener closed listener=%s", name)
        for name in self._unbound - names:
            self._alerts.clear(AlertKind.LISTENER_NOT_BOUND, name)
        self._unbound &= names
        for listener in wanted:
            try:
                self._settle(listener, processors)
            except OSError as error:
                self._unbound.add(listener.name)
                self._alerts.set(
                    AlertKind.LISTENER_NOT_BOUND,
                    listener.name,
                    f"cannot listen on {listener} ({error}): set listeners to addresses that are "
                    "free, or free this one and set them again",
                )
            else:
                self._unbound.discard(listener.name)
                self._alerts.clear(AlertKind.LISTENER_NOT_BOUND, listener.name)

    def _settle(self, listener: Listener, processors: int) -> None:
        one = self._open.get(listener.name)
        if one is None:
            self._add(listener, processors).acceptor.start()
            LOGGER.info("listener opened listener=%s", listener)
            return
        one.resize(processors, self._make_processor)
        if one.listener != listener:
            bound = self._bind(listener)
            one.acceptor.close()
            one.acceptor = self._make_acceptor(listener.name, bound, one.processors)
            one.listener = listener
            one.acceptor.start()
            LOGGER.info("listener moved listener=%s", listener)

    def _add(self, listener: Listener, processors: int) -> OpenListener:
        bound = self._bind(listener)
        own: list[Processor] = []
        acceptor = self._make_acceptor(listener.name, bound, own)
        one = self._open[listener.name] = OpenListener(listener, acceptor, own)
        one.resize(processors, self._make_processor)
        return one

    @property
    def addresses(self) -> list[tuple[str, str, int]]:
        """(listener, host, port) as bound."""
        return [(name, one.listener.host, one.acceptor.port) for name, one in self._open.items()]

    def processors(self) -> Iterable[Processor]:
        """Of all listeners."""
        return [processor for one in self._open.values() for processor in one.all_processors()]

    def close(self) -> None:
        """Stop accepting; connections stay."""
        for one in self._open.values():
            one.acceptor.close()
