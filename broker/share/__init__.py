"""Share groups (KIP-932), the delivery half: who works on which record, and what became of it."""
