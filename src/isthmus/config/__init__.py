"""File, environment and flags → `Config`. Start at `load.load_config`; `schema` lists every key."""

from isthmus.config.load import Reading, load_config, read_config
from isthmus.config.schema import Config, ProviderConfig
from isthmus.values.problems import Problem

__all__ = ["Config", "Problem", "ProviderConfig", "Reading", "load_config", "read_config"]
