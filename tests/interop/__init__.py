"""Real clients, real tools and real Kafka directories against a broker process."""
