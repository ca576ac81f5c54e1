"""A store copied to another one, whatever either of them is made of."""
