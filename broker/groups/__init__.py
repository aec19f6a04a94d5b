"""Group coordinator: members of groups, their assignments, and committed offsets.

Order, top to bottom; each knows only those below it:

    coordinator       group -> shard; what the handlers call
    shard             one partition of __consumer_offsets as the coordinator runtime serves it
    replay            the newest records of the partition -> groups and offsets
    migration/        classic groups become consumer groups, and back
    consumer/         KIP-848             share/   KIP-932 (membership)
    offsets/          commit, fetch, delete, expire; the offsets, packed
    classic/          JoinGroup, SyncGroup, Heartbeat, LeaveGroup
    modern/           common base of consumer groups and share groups;  regex/  topic patterns
    state/            the groups of a shard (its log: `broker.coordinator.shard_log`)

Everything runs on the event loop and nothing here awaits, except loading, the expiry and the
deletion of topics between their slices.
"""
