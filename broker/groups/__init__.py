"""Group coordinator: who is in a group, who gets which partitions, and what was committed.

Order, top to bottom; each knows only those below it:

    coordinator       group -> shard; what the handlers call
    shard             one partition of __consumer_offsets as the coordinator runtime serves it
    replay            the newest records of the partition -> groups and offsets
    migration/        classic groups become consumer groups, and back
    consumer/         KIP-848             share/   KIP-932 (membership)
    offsets/          commit, fetch, delete, expire; the offsets, packed
    classic/          what join, sync, heartbeat and leave do to a group
    modern/           what consumer groups and share groups have in common;  regex/  topic patterns
    state/            the groups of a shard (its log: `broker.coordinator.shard_log`)

Everything runs on the event loop and nothing here awaits, except loading, the expiry and the
deletion of topics between their slices.
"""
