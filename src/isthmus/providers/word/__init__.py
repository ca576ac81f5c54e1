"""What a server says of its own models: pure readers of its answers, and the facts that they become."""
