"""Work that may take long or never end, done in processes that can be killed: nobody else waits for it."""
