"""Settings: what they are called, what they may be, where they come from. Imports nothing of ours."""
