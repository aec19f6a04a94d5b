"""A setting of topics as a leader may know it: what the store has, and what it had lately."""

from typing import Final

from tests.simulation.world import World

HEARD_S: Final = 1.0
"""A session later no leader acts on what it heard before; so much for what is under way."""


class TopicSetting:
    """One setting, a number, of all topics."""

    def __init__(self, world: World, name: str, default: int) -> None:
        """`default`: of topics that do not set it."""
        session_ms = world.brokers[1].settings["broker_session_timeout_ms"]
        assert isinstance(session_ms, int)
        self._heard_s = session_ms / 1000 + HEARD_S
        self._world = world
        self._name = name
        self._default = default
        # By topic, since when it is what; the one of now last.
        self._known: dict[str, list[tuple[float, int]]] = {}

    def note(self, topic: str) -> None:
        """Look at what it is now; to be called whenever it may have changed."""
        image = self._world.image.topics.get(topic)
        said = None if image is None else image.overrides.get(self._name)
        value = self._default if said is None else int(said)
        known = self._known.setdefault(topic, [])
        if not known or known[-1][1] != value:
            known.append((self._world.loop.time(), value))

    def lately(self, topic: str) -> list[int]:
        """All values that some leader may go by now."""
        self.note(topic)
        known = self._known[topic]
        since_s = self._world.loop.time() - self._heard_s
        while len(known) > 1 and known[1][0] <= since_s:
            del known[0]
        return [value for _, value in known]
