"""Keys and values of the records that brokers write for themselves, in Kafka's formats."""
