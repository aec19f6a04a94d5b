"""`varve cluster`: the brokers of a cluster, and what an operator does with them."""
