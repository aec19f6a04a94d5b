"""Delivery of records to share groups (KIP-932), and the durable delivery state."""
