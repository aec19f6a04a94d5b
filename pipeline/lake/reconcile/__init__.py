"""Reconciliation of a table with its log, for append-only and for keyed tables."""
