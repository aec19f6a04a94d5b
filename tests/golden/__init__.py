"""Frames that real clients and a real Kafka broker exchanged, byte for byte."""
