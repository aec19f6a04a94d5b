"""Tests of broker.transactions."""
