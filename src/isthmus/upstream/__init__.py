"""The only network code: how planned bodies reach providers."""
