"""Kafka's own tests of brokers, as they are released, run against Varve."""
