"""Kafka's wire protocol: bytes to messages and back. No IO, no await, imports nothing of ours."""
