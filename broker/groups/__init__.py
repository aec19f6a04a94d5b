"""Group coordinator: who is in a group, who gets which partitions, and what was committed.

Order, top to bottom; each knows only those below it:

    coordinator       group -> shard; what the handlers call
    coordinator_shard one partition of __consumer_offsets as the coordinator runtime serves it
    replay            the newest records of the partition -> groups and offsets
    offset_manager    commit, fetch, delete, expire
    classic_protocol  what join, sync, heartbeat and leave do to a group
    rebalance         from one generation to the next; timeouts
    parked            answers to requests that wait in a group
    shard             its groups, its offsets, its log (`broker.coordinator.shard_log`)
    classic_group     state of one group;  offset_store  committed offsets, packed

Everything runs on the event loop and nothing here awaits, except loading, the expiry and the
deletion of topics between their slices.
"""
