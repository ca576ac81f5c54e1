"""Search as tools use it: hosted `web_search` and Codex's standalone search, over one port."""
