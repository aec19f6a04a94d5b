"""Settings: their names, what they may be, where they come from. Imports nothing of ours."""
