"""The one loop that carries out what a turn commands, for the gateway and for the library."""
