"""The leader's side of the Fetch requests of followers."""
