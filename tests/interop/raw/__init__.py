"""Raw requests, one after the other, whose whole answers two brokers are compared by."""
