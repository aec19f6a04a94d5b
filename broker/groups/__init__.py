"""Group coordinator: who is in a group, who gets which partitions, and what was committed.

Order, top to bottom; each knows only those below it:

    coordinator       group -> shard; life of the shards; what the handlers call
    shard             one partition of __consumer_offsets: its groups, its offsets, its log
    classic_protocol  join, sync, heartbeat, leave: the rebalance as a state machine
    offset_manager    commit, fetch, delete, expire
    loader            the log, read back
    offsets_log       writes, and what happens when they fail
    classic_group     state of one group;  offset_store  committed offsets, packed

Everything runs on the event loop and nothing here awaits, except the loader between its slices.
"""
