"""ReplicaManager: partitions, purgatories, fetch sessions, and the logs behind them."""
