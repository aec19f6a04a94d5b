"""SIGTERM while many clients have offset commits under way: what was answered is in the log."""

import socket
import threading
from functools import partial
from pathlib import Path

import pytest

from protocol.error_codes import ErrorCode
from protocol.headers import encode_request_header
from protocol.messages import find_coordinator, offset_commit, offset_fetch
from tests.system.hostile.conftest import Note
from tests.system.hostile.server import Target
from tests.system.hostile.test_bombs import ask, create

COMMIT, FETCH, FIND, API_VERSIONS = 8, 9, 10, 18
UNDER_WAY = 30
STOPPING = {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE}


def commit_of(group: str, offset: int) -> bytes:
    """OffsetCommit version 8, without its header."""
    partition = offset_commit.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=offset, committed_metadata=""
    )
    request = offset_commit.OffsetCommitRequest(
        group_id=group,
        topics=[offset_commit.OffsetCommitRequestTopic(name="plain", partitions=[partition])],
    )
    return offset_commit.encode_request(request, 8)


def code_of(answer: bytes) -> int:
    """The partition's error."""
    response = offset_commit.decode_response(memoryview(answer)[5:], 8)
    return response.topics[0].partitions[0].error_code


class Committer(threading.Thread):
    """Has commits under way until the broker hangs up, and in between what is answered at once."""

    def __init__(self, target: Target, group: str) -> None:
        super().__init__()
        self._target = target
        self.group = group
        self.acknowledged = -1
        self.errors: set[int] = set()
        self.out_of_order: list[tuple[int, int]] = []
        self.sent = 0

    def run(self) -> None:
        answered = 0
        try:
            with self._target.connect() as connection:
                while True:
                    while self.sent - answered < UNDER_WAY:
                        self._send(connection)
                    head = connection.recv(4, socket.MSG_WAITALL)
                    if len(head) < 4:
                        return
                    answer = connection.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL)
                    self._take(answer, answered)
                    answered += 1
        except OSError:
            return

    def _send(self, connection: socket.socket) -> None:
        number = self.sent
        if number % 5 == 4:
            frame = encode_request_header(API_VERSIONS, 0, number, "c")
        else:
            frame = encode_request_header(COMMIT, 8, number, "c") + commit_of(self.group, number)
        connection.sendall(len(frame).to_bytes(4, "big") + frame)
        self.sent += 1

    def _take(self, answer: bytes, expected: int) -> None:
        number = int.from_bytes(answer[:4], "big")
        if number != expected:
            self.out_of_order.append((expected, number))
        elif number % 5 != 4:
            code = code_of(answer)
            if code:
                self.errors.add(code)
            else:
                self.acknowledged = number


def is_served(target: Target, group: str) -> bool:
    """Whether there is a coordinator of the group, which has read its log."""
    return not code_of(ask(target, COMMIT, 8, commit_of(group, 0)))


def committed(target: Target, group: str) -> int:
    """What the broker knows; -1 while it is still being read back."""
    wanted = offset_fetch.OffsetFetchRequestTopic(name="plain", partition_indexes=[0])
    request = offset_fetch.OffsetFetchRequest(group_id=group, topics=[wanted])
    answer = ask(target, FETCH, 7, offset_fetch.encode_request(request, 7))
    response = offset_fetch.decode_response(memoryview(answer)[5:], 7)
    if response.error_code:
        return -1
    return response.topics[0].partitions[0].committed_offset


def is_loaded(target: Target, group: str) -> bool:
    """Whether the group's offset has been read back."""
    return committed(target, group) >= 0


@pytest.mark.parametrize("linger_ms", [-1, 300])
def test_commits_that_were_answered_are_there_after_a_stop(
    tmp_path: Path, note: Note, linger_ms: int
) -> None:
    """Answers come in the order of requests, each once, and none is a success without a record."""
    target = Target(tmp_path, {"group.coordinator.append.linger.ms": str(linger_ms)})
    target.start()
    try:
        create(target)
        request = find_coordinator.FindCoordinatorRequest(key="g0", key_type=0)
        ask(target, FIND, 3, find_coordinator.encode_request(request, 3))
        committers = [Committer(target, f"g{number}") for number in range(12)]
        for one in committers:
            assert target.eventually(partial(is_served, target, one.group))
        for one in committers:
            one.start()
        assert target.eventually(lambda: all(one.acknowledged > UNDER_WAY for one in committers))
    finally:
        code = target.stop(60)
    for one in committers:
        one.join(60)
    note(sent=sum(one.sent for one in committers), errors={c for o in committers for c in o.errors})
    assert code == 0, target.log_tail()
    assert not target.complaints(), target.complaints()[0]
    target.start()
    try:
        for one in committers:
            assert not one.out_of_order
            assert one.errors <= STOPPING
            assert target.eventually(partial(is_loaded, target, one.group))
            assert one.acknowledged <= committed(target, one.group) < one.sent
    finally:
        target.stop()
