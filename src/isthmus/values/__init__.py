"""Plain values: read into structs with every problem found, shown without secrets, written as TOML."""
