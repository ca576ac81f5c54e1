"""Numbers about the gateway, for whoever watches many of them: counted here, read at `/metrics`."""
