"""Tools, from the request to the upstream body and back: one plan, made once, read by dialect and assembler."""
