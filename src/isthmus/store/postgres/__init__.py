"""PostgreSQL, the store of many machines: a few connections, each on a thread of its own, and one that listens."""
