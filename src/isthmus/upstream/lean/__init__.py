"""A client of HTTP/1.1 on httptools, for every way that leads through no proxy: few calls of Python for each answer."""
