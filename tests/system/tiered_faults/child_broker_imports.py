"""What a broker with remote storage imports, imported once before brokers are forked."""

import importlib

for _name in (
    "aiobotocore.session",
    "botocore.exceptions",
    "uvloop",
    "broker.app",
    "broker.remote.metadata_log",
    "tiered.tasks.remote_log_manager",
    "tiered.fetch.reader",
    "tiered.metadata.snapshot_store",
    "tiered.metadata.topic_based_manager",
    "tiered.worker.factory",
    "tiered.worker.assembly",
    "tiered.worker.inline",
    "tests.system.tiered_faults.child_broker",
):
    importlib.import_module(_name)
