"""The facts of a request's life for collectors of OpenTelemetry: an extra, loaded where it is switched on."""
