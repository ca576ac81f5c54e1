"""SQLite, the default store: one file, one writer thread, as many readers as are useful."""
