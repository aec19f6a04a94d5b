"""The coordinator runtime: state machines that are replicated by a partition of an internal topic.

Groups, transactions and share state each have a topic (`__consumer_offsets`, `__transaction_state`,
`__share_group_state`). Each partition of it is one *shard*: replayed from the partition when this
broker becomes its leader, written to it with every change, unloaded when another broker leads.

    runtime                 elections, which shard serves a key, loading, reloading
    election                life cycle of one election: the states, and the transitions allowed
    shard                   what groups, transactions and share state implement
    loader                  replays a partition into a shard, in slices of time
    latest_records          newest value of each key while loading; transactional records wait
    shard_log               appends to the partition: gathered, split, failed
    elected_appender        appends in the election's leader epoch, and in no other
    writes                  appends under way, and how each ends
    deferred_records        deferred records: written with the next append, within 200 ms
    outcome                 result of an append, and its error code for clients
    deferred                calls that wait until a shard is active, with a time-out
    topics_change           topics created, altered and deleted between two images of the cluster
    slices                  long work yields to the event loop
    upkeep                  periodic work, one run at a time
    partitioner             key -> partition
    unavailable_partitions  partitions that cannot be read: alerts and a metric
    peer_batches            requests to other brokers, one a broker and turn
    stats                   counters of loads

Imports nothing of groups, transactions and share.

Source of the shape: Kafka, CoordinatorRuntime.java, CoordinatorShard.java.
"""
