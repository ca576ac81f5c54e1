"""HTTP: routes, error → status, streams. The only room that knows HTTP status codes."""
