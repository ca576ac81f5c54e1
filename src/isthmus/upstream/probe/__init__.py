"""Asks a live endpoint what it can do. What to ask, and what the answers mean, is pure; `probe` does the asking."""
