"""Asks a live endpoint what it can do. Deciding what to ask and reading the answers is pure; `probe` does the asking."""
