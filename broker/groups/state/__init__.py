"""Groups of one shard, and the common interface of all kinds of groups."""
