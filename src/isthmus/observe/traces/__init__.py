"""Facts → traces: gathered on the loop, made and written beside it."""
