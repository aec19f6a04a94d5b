"""Tests of `broker.replicas.logs`."""
