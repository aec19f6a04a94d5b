"""The server: network, router, handlers, replica manager, coordinators, controller."""
