"""A member of a share group (KIP-932), as scripts have it heartbeat."""

import time
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid5

from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.interop.raw.dialogue import Dialogue

JOIN, LEAVE = 0, -1


@dataclass
class ShareMember:
    """A member that follows the protocol."""

    dialogue: Dialogue
    group: str
    name: str
    topics: list[str] | None = None
    epoch: int = JOIN

    @property
    def member_id(self) -> str:
        """As clients make it up, and the same in every run."""
        return str(uuid5(UUID(int=2), self.name))

    def request(self, **fields: Any) -> ShareGroupHeartbeatRequest:
        """What it sends next; `fields` are changes or a client's mistakes."""
        values: dict[str, Any] = {
            "group_id": self.group,
            "member_id": self.member_id,
            "member_epoch": self.epoch,
            "subscribed_topic_names": self.topics if self.epoch == JOIN else None,
        }
        return ShareGroupHeartbeatRequest(**(values | fields))

    def beat(self, what: str, **fields: Any) -> Any:
        """One heartbeat, noted."""
        answer = self.dialogue.ask(f"{self.name} {what}", self.request(**fields))
        if answer is not None and answer.error_code == 0:
            self.epoch = max(answer.member_epoch, JOIN)
        return answer

    def settle(self, partitions: int, what: str = "has its partitions") -> None:
        """Heartbeats until it works on so many partitions; what it has then is noted.

        Partitions are given out when their share state is there, which takes its time.
        """

        def has_all(answer: Any) -> bool:
            if answer.error_code == 0:
                self.epoch = answer.member_epoch
            given = answer.assignment.topic_partitions if answer.assignment else []
            return answer.error_code != 0 or sum(len(t.partitions) for t in given) == partitions

        for _ in range(200):
            answer = self.dialogue.ask_quietly(self.request(subscribed_topic_names=self.topics))
            if has_all(answer):
                break
            time.sleep(0.02)
        # How many epochs it took depends on when the share state was there.
        given = answer.assignment.topic_partitions if answer.assignment else []
        plain = sorted(str(self.dialogue.plain(t)) for t in given)
        self.dialogue.transcript.append(f"{self.name} {what}: {answer.error_code} {plain}")

    def leave(self) -> None:
        """Say good-bye."""
        self.beat("leaves", member_epoch=LEAVE)
        self.epoch = JOIN


def begin_state(d: Dialogue, group: str, *topics: tuple[str, int]) -> None:
    """Have a group's share state begun: topics, and how many partitions each has."""
    member = ShareMember(d, group, "first", [name for name, _ in topics])
    member.settle(sum(partitions for _, partitions in topics), "had its state begun")
    member.leave()
