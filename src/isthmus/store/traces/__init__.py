"""Traces in a file of their own, beside the store."""
