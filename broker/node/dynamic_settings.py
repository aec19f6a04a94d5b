"""Settings of the broker that change while it runs (Kafka's dynamic broker configs).

What AlterConfigs sets on this broker, or on all brokers, is in the cluster's image (`configs`);
after every change of it the effective settings are compared with those before, and subscribers to
a key that differs are called with both.

    AlterConfigs ──> controller ──> new image ──> DynamicSettings.apply ──> subscribers

Defaults for topics have no subscriber here: `LogLifecycle` gives them to the logs. Every other
dynamic key has one, or is read from `current` whenever its value is needed (`read_later`): one that
is accepted, shown and not used would be a lie.
"""

import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from config.broker import BROKER_KEYS

if TYPE_CHECKING:
    from broker.controller.controller import Controller
    from broker.controller.images.cluster_image import ClusterImage
    from config.broker import BrokerConfig

LOGGER = logging.getLogger(__name__)

Subscriber = Callable[["BrokerConfig", "BrokerConfig"], None]
"""Called on the loop with the settings before and after a change; an exception is logged."""


class DynamicSettings:
    """See the module. Runs on the loop's thread."""

    def __init__(self, controller: "Controller") -> None:
        self._controller = controller
        self._current = controller.effective_settings
        self._subscribers: list[tuple[frozenset[str], Subscriber]] = []
        controller.subscribe(self.apply)

    @property
    def current(self) -> "BrokerConfig":
        """The effective settings."""
        return self._current

    def subscribe(self, keys: Iterable[str], subscriber: Subscriber) -> None:
        """Call `subscriber` after a change of one of `keys`, by Kafka's names.

        It is called at once when one of them was set at run time before this start: what it was
        built from are the start-up settings.
        """
        wanted = frozenset(keys)
        unknown = [key for key in wanted if key not in BROKER_KEYS or not BROKER_KEYS[key].dynamic]
        assert not unknown, f"not dynamic: {unknown}"
        self._subscribers.append((wanted, subscriber))
        if _differences(self._controller.settings, self._current, wanted):
            self._call(subscriber, self._controller.settings, self._current)

    def read_later(self, keys: Iterable[str]) -> None:
        """Settings of which `current` is read each time, so that a change needs no call."""
        self._subscribers.append((frozenset(keys), lambda _before, _after: None))

    async def apply(self, old: "ClusterImage", new: "ClusterImage") -> None:
        """Apply a new image; a listener of the controller."""
        if new.configs is old.configs:
            return
        before, after = self._current, self._controller.effective_settings
        self._current = after
        changed = _differences(before, after, BROKER_KEYS)
        for name in sorted(changed):
            row = BROKER_KEYS[name]
            LOGGER.info(
                "dynamic config changed key=%s from=%s to=%s",
                name,
                row.shown(getattr(before, row.field_name)),
                row.shown(getattr(after, row.field_name)),
            )
        for wanted, subscriber in self._subscribers:
            if not wanted.isdisjoint(changed):
                self._call(subscriber, before, after)

    @staticmethod
    def _call(subscriber: Subscriber, before: "BrokerConfig", after: "BrokerConfig") -> None:
        try:
            subscriber(before, after)
        except Exception:  # the setting is committed: the others are called all the same
            LOGGER.exception("dynamic config could not be applied")


def _differences(
    before: "BrokerConfig", after: "BrokerConfig", keys: Iterable[str]
) -> frozenset[str]:
    return frozenset(
        key
        for key in keys
        if getattr(before, BROKER_KEYS[key].field_name)
        != getattr(after, BROKER_KEYS[key].field_name)
    )
