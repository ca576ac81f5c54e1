"""The only loop that awaits: requests in, planned turns out, saved before they are told."""
