"""Which modules of Python are compiled by mypyc: those that a Produce or a Fetch goes through.

All of one build are in one shared library, so they call each other without the interpreter. What is
not listed stays Python, and calls and is called as ever.

A module that is listed must mean the same when it is interpreted. What mypyc makes different:

- its classes have no `__dict__` and no attributes but those that are declared in their bodies or
  `__init__`; an interpreted class cannot inherit from one, unless that is allowed
  (`native.subclasses`): Python says so when the first object is made;
- what is annotated is checked at run time: an `int` that is none raises TypeError;
- a name that is imported from a module of Python is looked up at every use; a `Final` name for it
  is not, so what each request calls there has one;
- `Final` values that are known are copied to where they are used, from modules of Python, too;
- functions and methods cannot be replaced (`monkeypatch`) for callers within the build;
- a function within another knows its variables, and they know it, as soon as both name the same
  function, be it `len`: what it is made with for each request is left to the garbage collector
  (`tests/unit/broker/requests/test_garbage.py` finds it). A method and `partial` are none;
- a `__del__` may run when the interpreter has ended so far that an error in it, caught or not, ends
  the process with SIGSEGV: its traceback needs names that are gone. No listed class has one.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
"""The folder of the packages."""

COMPILED: Final = (
    "broker.coordinator.deferred_records",
    "broker.coordinator.outcome",
    "broker.coordinator.partitioner",
    "broker.coordinator.shard_log",
    "broker.coordinator.writes",
    "broker.groups.offsets.offset_manager",
    "broker.groups.offsets.transactional",
    "broker.groups.state.group_shard",
    "broker.groups.state.offset_store",
    "broker.handlers.add_partitions_to_txn",
    "broker.handlers.end_txn",
    "broker.handlers.fetch",
    "broker.handlers.offset_commit",
    "broker.handlers.produce",
    "broker.handlers.txn_offset_commit",
    "broker.network.connection",
    "broker.network.connection_info",
    "broker.network.connection_limits",
    "broker.network.connection_poller",
    "broker.network.iteration_end",
    "broker.network.processor",
    "broker.network.read_budget",
    "broker.network.read_gate",
    "broker.network.receive_buffers",
    "broker.network.request_channel",
    "broker.network.response",
    "broker.network.sender",
    "broker.network.stream",
    "broker.peers.connection",
    "broker.peers.peer_request",
    "broker.replicas.delayed_fetch",
    "broker.replicas.delayed_produce",
    "broker.replicas.fetch_sessions",
    "broker.replicas.following",
    "broker.replicas.group_commit",
    "broker.replicas.offset_waits",
    "broker.replicas.partition",
    "broker.replicas.partition_context",
    "broker.replicas.partition_writes",
    "broker.replicas.purgatory",
    "broker.replicas.replica_manager",
    "broker.replicas.topic_stats",
    "broker.replication.fetcher.answer",
    "broker.replication.fetcher.delays",
    "broker.replication.fetcher.followed_partition",
    "broker.replication.fetcher.replica_fetcher",
    "broker.replication.fetcher.session",
    "broker.replication.followers.followed_partition",
    "broker.replication.followers.follower_fetches",
    "broker.replication.followers.follower_sessions",
    "broker.replication.followers.look",
    "broker.replication.followers.parked_fetch",
    "broker.replication.followers.shared_records",
    "broker.replication.leader_state",
    "broker.replication.quota",
    "broker.replication.replica_progress",
    "broker.replication.terms",
    "broker.requests.answer",
    "broker.requests.api_stats",
    "broker.requests.kafka_apis",
    "broker.requests.reply",
    "broker.requests.request_context",
    "broker.requests.request_limits",
    "broker.requests.single_batch",
    "broker.runtime.deadline",
    "broker.runtime.timer",
    "broker.runtime.watchers",
    "broker.transactions.coordinator.add_partitions",
    "broker.transactions.coordinator.completion",
    "broker.transactions.coordinator.end_rules",
    "broker.transactions.coordinator.end_transaction",
    "broker.transactions.coordinator.shard",
    "broker.transactions.coordinator.transaction_metadata",
    "broker.transactions.coordinator.transaction_state",
    "broker.transactions.partitions.markers",
    "broker.transactions.partitions.transactional_produce",
    "broker.transactions.partitions.verification",
    "protocol.framing",
    "protocol.headers",
    "protocol.hot.fetch",
    "protocol.hot.fetch_decode",
    "protocol.hot.fetch_encode",
    "protocol.hot.fetch_request",
    "protocol.hot.follower_fetch",
    "protocol.hot.offset_commit",
    "protocol.hot.produce",
    "protocol.hot.share_fetch",
    "protocol.hot.wire",
    "protocol.internal.consumer_offsets",
    "protocol.internal.record_fields",
    "protocol.internal.transaction_log",
    "protocol.primitives",
    "protocol.records.batch",
    "protocol.records.builder",
    "protocol.records.control",
    "protocol.records.varint",
    "storage.environment.clock",
    "storage.environment.local_filesystem",
    "storage.index.batch_scan",
    "storage.index.offset_index",
    "storage.index.reads",
    "storage.index.sparse_index",
    "storage.index.time_index",
    "storage.index.transaction_index",
    "storage.log.append",
    "storage.log.append_as_follower",
    "storage.log.append_markers",
    "storage.log.directory_pace",
    "storage.log.disk_work",
    "storage.log.flush",
    "storage.log.log",
    "storage.log.read",
    "storage.log.roll",
    "storage.log.state",
    "storage.log.validator",
    "storage.log.wholeness",
    "storage.log.write_behind",
    "storage.log.write_queue",
    "storage.log.write_ticket",
    "storage.producers.capture",
    "storage.producers.entry",
    "storage.producers.rules",
    "storage.producers.state",
    "storage.producers.table",
    "storage.producers.verification",
    "storage.segment.batch_append",
    "storage.segment.flush",
    "storage.segment.index_builder",
    "storage.segment.indexed_segment",
    "storage.segment.readable_segment",
    "storage.segment.segment",
    "storage.segment.segment_files",
    "storage.segment.segments",
    "storage.types.append_info",
    "storage.types.append_origin",
    "storage.types.file_slice",
    "storage.types.topic_partition",
    "storage.types.transaction_marker",
)
"""Names of modules, in order; no packages."""

IN_C: Final[Mapping[str, str]] = {
    "protocol.quick": "native/quick.c",
    "storage.environment.quick_clock": "native/quick_clock.c",
    "storage.environment.quick_reads": "native/quick_reads.c",
}
"""Modules that are written in C a second time, and where. Such a source is part of the build, whose
modules call what it defines as they call Python."""


def module_path(name: str, root: Path) -> Path | None:
    """The file of the module or package `name` below `root`, if it is one of ours."""
    stem = root.joinpath(*name.split("."))
    for path in (stem.with_name(f"{stem.name}.py"), stem / "__init__.py"):
        if path.is_file():
            return path
    return None


__all__ = ["COMPILED", "IN_C", "ROOT", "module_path"]
