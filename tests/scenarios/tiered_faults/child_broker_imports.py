"""What a broker with remote storage imports, imported once before brokers are forked."""

import importlib

for _name in (
    "aiobotocore.session",
    "botocore.exceptions",
    "uvloop",
    "broker.app",
    "broker.remote.metadata_log",
    "tiered.manager",
    "tiered.reader",
    "tiered.snapshot_store",
    "tiered.topic_metadata_manager",
    "tiered.worker.factory",
    "tiered.worker.assembly",
    "tiered.worker.inline",
    "tests.scenarios.tiered_faults.child_broker",
):
    importlib.import_module(_name)
