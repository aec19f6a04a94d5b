"""Groups of one shard, and what every kind of group is."""
