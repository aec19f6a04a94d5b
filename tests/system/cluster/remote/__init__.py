"""Remote storage on several brokers."""
