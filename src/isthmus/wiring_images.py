"""`[images]` → who draws: a configured provider, or an endpoint of its own. Loaded only where somebody does."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec

from isthmus.bridge.capabilities import ImageSupport, ProviderCapabilities
from isthmus.bridge.limits import AnswerLimits, take_limits
from isthmus.bridge.types.plan import Target
from isthmus.conduct.aside import Aside
from isthmus.config.schema import Config, ProviderConfig
from isthmus.config.schema import Images as Settings
from isthmus.config.secrets import configured_secrets
from isthmus.errors import ConfigError
from isthmus.gateway.directory import Served
from isthmus.ports import Drawer, Workers
from isthmus.providers import load_provider
from isthmus.tools.images import ImageTool, Studio
from isthmus.upstream.endpoint import IMAGE_EDITS, IMAGES, Elsewhere, Endpoint, Patience
from isthmus.upstream.http import HttpBackend
from isthmus.upstream.retry import RetryingBackend
from isthmus.upstream.visit import Visitor

OWN = "images"
"""What an endpoint of its own is called in sentences and in `provider/model`."""
_OPENAI = ImageSupport(
    supported=True,
    edits="multipart",
    fields=dict.fromkeys(("n", "size", "quality", "background", "output_format", "output_compression", "user"), ""),
    mask=True,
    max_inputs=16,
    stream=True,
)
"""What is asked of an endpoint that nothing is known of: it is said to be in OpenAI's shape."""


def open_studio(config: Config, served: Mapping[str, Served], stack: AsyncExitStack, aside: Aside) -> Studio:
    settings = config.images
    target, drawer = _own_endpoint(config, stack, aside) if settings.url else _configured(settings, served)
    visits = Visitor(
        "the image",
        timeout=settings.timeout,
        at_once=settings.at_once,
        more_secrets=configured_secrets(config),
    )
    stack.push_async_callback(visits.aclose)
    return Studio(
        target,
        drawer,
        visits,
        timeout=settings.timeout,
        at_once=settings.at_once,
        max_image=settings.max_image,
        max_answer=config.limits.max_images,
        sizes=settings.sizes,
    )


async def open_image_tool(config: Config, stack: AsyncExitStack, workers: Workers) -> ImageTool:
    """For a library, which serves a provider only when somebody wants it."""
    served: dict[str, Served] = {}
    name = config.images.provider
    if not config.images.url:
        from isthmus.wiring import serve_provider

        settings = config.providers.get(name) or ProviderConfig(uses=name)
        served[name] = await serve_provider(name, settings, config, stack, workers)
        stack.push_async_callback(served[name].backend.aclose)
    return ImageTool(open_studio(config, served, stack, Aside()))


def foresee_image_tool(config: Config) -> ImageTool:
    """For those who only look at a plan: nobody is asked, and nobody could be."""
    settings, name = config.images, config.images.provider
    if settings.url:
        target = _own_target(settings)
    else:
        given = config.providers[name]
        folders = [Path(folder) for folder in config.provider_folders]
        provider = load_provider(given.uses or name, folders, models=given.models, dialect=given.dialect)
        facts = provider.capabilities(settings.model or "")
        target = Target(name, settings.model or next(iter(facts.images.models), ""), facts)
    nobody: Any = None
    return ImageTool(Studio(target, nobody, nobody, sizes=settings.sizes))


def _configured(settings: Settings, served: Mapping[str, Served]) -> tuple[Target, Drawer]:
    name = settings.provider
    found = served.get(name)
    if found is None or found.drawer is None:
        able = [each for each, other in served.items() if other.drawer is not None]
        known = ", ".join(f"`{each}`" for each in able) or "none of them can; give the address of one that can in `url`"
        what = "is not configured" if found is None else "draws no images that we know of"
        raise ConfigError(f"`images.provider` is `{name}`, which {what}; choose among {known}", param="images.provider")
    models = found.provider.capabilities().images.models
    model = settings.model or (models[0] if models else "")
    if not model:
        words = f"`images.model` is missing: the file of `{name}` names none that draws; set it"
        raise ConfigError(words, param="images.model")
    return Target(name, model, found.provider.capabilities(model)), found.drawer


def _own_endpoint(config: Config, stack: AsyncExitStack, aside: Aside) -> tuple[Target, Drawer]:
    settings = config.images
    if not settings.model:
        words = "`images.model` is missing: nothing is known of the endpoint at `images.url`; set it"
        raise ConfigError(words, param="images.model")
    base = settings.url.rstrip("/")
    headers = {"authorization": f"Bearer {settings.api_key}"} if settings.api_key else {}
    paths = {IMAGES: _OPENAI.path, IMAGE_EDITS: _OPENAI.edits_path}
    endpoint = Endpoint(
        provider=OWN,
        url=f"{base}/{_OPENAI.path}",
        headers=headers,
        others={name: Elsewhere(f"{base}/{path}", headers) for name, path in paths.items()},
        max_connections=settings.at_once,
        patience=Patience(first_byte=settings.timeout, idle=settings.timeout),
        credential="`images.api_key`" if settings.api_key else "no key: `images.api_key` is not set",
        called="the images endpoint",
    )
    backend = HttpBackend(endpoint, configured_secrets(config), take_limits(AnswerLimits, config.limits), aside)
    stack.push_async_callback(backend.aclose)
    return _own_target(settings), RetryingBackend(backend)


def _own_target(settings: Settings) -> Target:
    facts = msgspec.structs.replace(ProviderCapabilities(), provider=OWN, model=settings.model, images=_OPENAI)
    return Target(OWN, settings.model, facts)
