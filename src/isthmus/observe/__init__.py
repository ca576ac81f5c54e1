"""What a request's life tells to people: the log now, metrics and traces beside it later."""
