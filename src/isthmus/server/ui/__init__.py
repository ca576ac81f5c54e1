"""The page: what runs here and what became of every request, for people with a browser."""
