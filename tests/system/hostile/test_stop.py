"""SIGTERM with requests under way, and a second broker on the same directory."""

import contextlib
import socket
import threading
import time
from pathlib import Path

from bench.node import VarveNode
from broker.broker import STOP_TIMEOUT_S
from protocol.headers import encode_request_header
from protocol.messages import produce
from protocol.records.builder import build_batch
from tests.system.hostile.conftest import Note
from tests.system.hostile.server import Target, running
from tests.system.hostile.test_bombs import create
from tests.system.hostile.test_connections import fetch_frame

CLEAN_MARKER = ".kafka_cleanshutdown"


class Producer(threading.Thread):
    """Sends produce requests one after another until the broker hangs up; counts the answers."""

    def __init__(self, target: Target) -> None:
        super().__init__()
        self._target = target
        self.acknowledged = 0
        self.failed: list[int] = []
        self.ended = "running"

    def run(self) -> None:
        batch = bytes(build_batch([(b"k", b"v" * 500, (), int(time.time() * 1000))]))
        data = produce.PartitionProduceData(index=0, records=memoryview(batch))
        request = produce.ProduceRequest(
            acks=-1,
            timeout_ms=10_000,
            topic_data=[produce.TopicProduceData(name="plain", partition_data=[data])],
        )
        body = encode_request_header(0, 9, 1, "p") + produce.encode_request(request, 9)
        frame = len(body).to_bytes(4, "big") + body
        try:
            with self._target.connect() as connection:
                while True:
                    connection.sendall(frame)
                    head = connection.recv(4, socket.MSG_WAITALL)
                    if len(head) < 4:
                        self.ended = "closed"
                        return
                    size = int.from_bytes(head, "big")
                    answer = connection.recv(size, socket.MSG_WAITALL)
                    response = produce.decode_response(memoryview(answer)[5:], 9)
                    code = response.responses[0].partition_responses[0].error_code
                    if code:
                        self.failed.append(code)
                    else:
                        self.acknowledged += 1
        except OSError as error:
            self.ended = type(error).__name__


def test_sigterm_answers_or_closes_and_leaves_a_clean_directory(tmp_path: Path, note: Note) -> None:
    """Acknowledged records are there after the restart, and nothing has to be recovered."""
    target = Target(tmp_path, {"group.initial.rebalance.delay.ms": "0"})
    target.start()
    create(target)
    producers = [Producer(target) for _ in range(8)]
    with contextlib.ExitStack() as stack:
        # Long polls that would last ten minutes, half a frame, a peer that reads nothing.
        for _ in range(50):
            waiting = stack.enter_context(target.connect())
            waiting.sendall(fetch_frame(600_000))
        half = stack.enter_context(target.connect())
        half.sendall((1000).to_bytes(4, "big") + bytes(20))
        silent = stack.enter_context(target.connect())
        silent.sendall(fetch_frame(0) * 2000)
        for producer in producers:
            producer.start()
        assert target.eventually(lambda: sum(one.acknowledged for one in producers) > 100)
        begin = time.monotonic()
        code = target.stop(60)
        seconds = time.monotonic() - begin
        for producer in producers:
            producer.join(60)
    acknowledged = sum(producer.acknowledged for producer in producers)
    note(seconds=seconds, acknowledged=acknowledged, ends={p.ended for p in producers})
    assert code == 0, target.log_tail()
    assert not target.complaints(), target.complaints()[0]
    # Else something was not answered, and the stop waited for it in vain.
    assert seconds < STOP_TIMEOUT_S
    assert acknowledged > 100
    assert not any(producer.failed for producer in producers)
    assert all(p.ended in ("closed", "ConnectionResetError", "BrokenPipeError") for p in producers)
    assert (target.data_directory / CLEAN_MARKER).exists()
    target.start()
    try:
        assert target.eventually(lambda: target.log().count("broker ready") == 2)
        log = target.log()
        assert "recovered_bytes=0" in log[log.rindex("broker ready") :], target.log_tail()
        end = _log_end(target)
        assert acknowledged <= end <= acknowledged + len(producers)
    finally:
        target.stop()


def _log_end(target: Target) -> int:
    """Latest offset of `plain`-0."""
    from protocol.messages import list_offsets
    from tests.system.hostile.test_bombs import ask

    partition = list_offsets.ListOffsetsPartition(partition_index=0, timestamp=-1)
    request = list_offsets.ListOffsetsRequest(
        topics=[list_offsets.ListOffsetsTopic(name="plain", partitions=[partition])]
    )
    answer = ask(target, 2, 6, list_offsets.encode_request(request, 6))
    response = list_offsets.decode_response(memoryview(answer)[5:], 6)
    return response.topics[0].partitions[0].offset


def test_a_second_broker_on_the_directory_is_refused(tmp_path: Path) -> None:
    """Exit 1, a sentence that names the directory, no traceback; the first goes on."""
    with running(tmp_path) as target:
        second = VarveNode(tmp_path / "second")
        second.data_directory = target.data_directory
        second.launch()
        process = second._process
        assert process is not None
        assert process.wait(60) == 1
        said = second.log_path.read_text()
        assert str(target.data_directory) in said
        assert "raceback" not in said
        with target.probe() as probe:
            time.sleep(0.3)
        assert not probe.seen.failures
