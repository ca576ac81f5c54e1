"""aiohttp's client, for the ways that lead through a proxy; nothing of it is loaded where none does."""
