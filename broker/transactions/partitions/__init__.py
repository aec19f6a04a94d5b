"""Transactions on the leaders of partitions: verification, transactional batches, markers."""
