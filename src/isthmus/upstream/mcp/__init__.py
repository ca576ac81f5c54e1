"""MCP servers that are called for a gateway's clients: the way there, the connections, what came of a call."""
