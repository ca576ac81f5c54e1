"""Dialect of providers that speak Responses themselves: same plan, same tools, same assembler."""
