"""The way to the parts of a share-partition, on whichever brokers they are.

persister_router   `SharePersister` for the whole cluster: who is asked, when, and how often
calls              one call: what it asks of the local coordinator, or by request
state_requests     the five requests: Initialize-, Read-, Write-, Delete-, ...ShareGroupState
end_offsets        where partitions end, of their leaders
"""
