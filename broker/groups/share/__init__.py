"""Share groups (KIP-932): members and assignments."""
