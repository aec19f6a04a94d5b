"""Transactions on the leader of a partition: verification, transactional batches, markers."""
