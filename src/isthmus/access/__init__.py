"""Who may ask, and for what."""
