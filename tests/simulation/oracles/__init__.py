"""What must hold: of a cluster after every event, of single kinds of things, and at the end."""
