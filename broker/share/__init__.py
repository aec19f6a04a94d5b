"""Share groups (KIP-932), the delivery half: who may work on which record, and what became of it."""
