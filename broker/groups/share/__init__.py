"""Share groups (KIP-932): who is in them, and which partitions each member works on."""
