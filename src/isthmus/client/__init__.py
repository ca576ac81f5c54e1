"""The Bridge client: one message model, every provider, tools that run. Import its names from `isthmus`."""
