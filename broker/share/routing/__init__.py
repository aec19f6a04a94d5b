"""The way to the share coordinator of a share-partition, on whichever broker it is.

persister_router   `SharePersister` for the whole cluster: who is asked, when, and how often
calls              one call: what it asks of the local coordinator, or by request
state_requests     the five requests: Initialize-, Read-, Write-, Delete-, ...ShareGroupState
"""
