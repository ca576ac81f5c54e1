"""Every client of the OpenAI Responses API, on every model."""

__version__ = "0.1.0"
