"""Transactions: who may write where until when, and how it ends (KIP-98, KIP-890)."""
