"""Providers as dated data: one TOML file each, merged for one *(provider, model)* pair.

`load_provider("deepseek").capabilities("deepseek-flash")` is all that the rest of the house needs.
Nothing is read before it is asked for.
"""

from isthmus.providers.load import Provider, check_provider_file, load_provider, provider_names
from isthmus.providers.schema import EndpointFacts, ResponsesFacts

__all__ = [
    "EndpointFacts",
    "Provider",
    "ResponsesFacts",
    "check_provider_file",
    "load_provider",
    "provider_names",
]
