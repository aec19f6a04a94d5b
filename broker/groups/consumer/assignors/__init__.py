"""Server-side assignors: which member of a consumer group shall own which partitions."""
