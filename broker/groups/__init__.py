"""Group coordinator: who is in a group, who gets which partitions, and what was committed.

Order, top to bottom; each knows only those below it:

    coordinator       group -> shard; life of the shards; what the handlers call
    loader            the log, read back into a shard
    offset_manager    commit, fetch, delete, expire
    classic_protocol  what join, sync, heartbeat and leave do to a group
    rebalance         from one generation to the next; timeouts
    parked            answers to requests that wait in a group
    shard             one partition of __consumer_offsets: its groups, its offsets, its log
    offsets_log       writes, and what happens when they fail
    classic_group     state of one group;  offset_store  committed offsets, packed

Everything runs on the event loop and nothing here awaits, except the loader, the expiry and the
deletion of topics between their slices.
"""
