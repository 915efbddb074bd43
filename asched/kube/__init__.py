"""HTTP, authentication, watches, writes, events, leases: the only outgoing connections."""
