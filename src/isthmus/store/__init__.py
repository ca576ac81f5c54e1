"""Where responses are kept. One contract (`isthmus.ports.Store`), several media; `open.open_store` picks by URL."""
