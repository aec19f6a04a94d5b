"""Being a broker of a cluster: registration, lease, and how long both are good for."""
