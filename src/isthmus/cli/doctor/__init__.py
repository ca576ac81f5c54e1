"""`isthmus doctor`: every part of an installation is looked at, each by a file of its own, and what to do is said."""
