"""`[images]` → who draws: a configured provider, or an endpoint of its own. Loaded only where somebody does."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack

import msgspec

from isthmus.bridge.capabilities import ImageSupport, ProviderCapabilities
from isthmus.bridge.limits import AnswerLimits, take_limits
from isthmus.bridge.types.plan import Target
from isthmus.conduct.aside import Aside
from isthmus.config.schema import Config
from isthmus.config.schema import Images as Settings
from isthmus.config.secrets import configured_secrets
from isthmus.errors import ConfigError
from isthmus.gateway.directory import Served
from isthmus.ports import Drawer
from isthmus.tools.images import Studio
from isthmus.upstream.http import HttpBackend
from isthmus.upstream.retry import RetryingBackend
from isthmus.upstream.visit import Visitor
from isthmus.upstream.wire import IMAGE_EDITS, IMAGES, Elsewhere, Endpoint, Patience

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


async def open_studio(config: Config, served: Mapping[str, Served], stack: AsyncExitStack, aside: Aside) -> Studio:
    settings = config.images
    target, drawer = await _own_endpoint(config, stack, aside) if settings.url else _configured(settings, served)
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


async def _own_endpoint(config: Config, stack: AsyncExitStack, aside: Aside) -> tuple[Target, Drawer]:
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
    facts = msgspec.structs.replace(ProviderCapabilities(), provider=OWN, model=settings.model, images=_OPENAI)
    return Target(OWN, settings.model, facts), RetryingBackend(backend)
