"""From a frame to its handler and back: KafkaApis, limits, statistics of each API."""
