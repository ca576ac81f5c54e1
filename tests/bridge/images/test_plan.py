"""One decision for each field of a request for images, for every provider that draws."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.images.plan import ImagePlan, nearest_size, plan_images
from isthmus.bridge.images.read import Picture, check_image_request
from isthmus.bridge.types.plan import Target
from isthmus.errors import RequestRefused
from isthmus.providers import load_provider
from isthmus.providers.load import provider_names

DRAW = sorted(name for name in provider_names() if load_provider(name).capabilities().images.models)
PICTURE = Picture(b"\x89PNG\r\n\x1a\n")


def target(provider: str = "openai", model: str = "") -> Target:
    facts = load_provider(provider).capabilities()
    return Target(provider, model or facts.images.models[0], facts)


def plan(provider: str = "openai", images: int = 0, mask: bool = False, **options: Any) -> ImagePlan:
    strict, sizes = options.pop("strict", False), options.pop("sizes", ())
    asked = check_image_request(
        "edit" if images else "generate",
        {"prompt": "a fox", **options},
        [PICTURE] * images,
        PICTURE if mask else None,
    )
    return plan_images(asked, target(provider), sizes=sizes, strict=strict)


def told(made: ImagePlan) -> dict[str, str]:
    return {each.path: each.action for each in made.diagnostics}


@pytest.mark.parametrize("provider", DRAW)
def test_what_codex_asks_for_is_plain_everywhere(provider: str) -> None:
    """It says `auto` and `opaque` of everything; only its model is not the one that draws."""
    made = plan(provider, background="opaque", model="gpt-image-2", quality="auto", size="auto", strict=False)
    extra = {"background": "opaque"} if "background" in made.facts.fields else {}
    formats = {"response_format": "b64_json"} if made.facts.asked_format else {}
    assert made.body == {"model": made.target.model, "prompt": "a fox", **extra, **formats}
    assert told(made) == ({} if made.target.model == "gpt-image-2" else {"model": "degraded"})


@pytest.mark.parametrize("provider", DRAW)
def test_every_other_field_has_a_decision(provider: str) -> None:
    made = plan(provider, size="1024x1024", quality="high", moderation="low", user="u", style="vivid", frob=1)
    decided = {each.path for each in made.compatibility.decisions}
    assert decided == {"size", "quality", "moderation", "user", "style", "frob"}
    for name in ("size", "quality", "user", "moderation"):
        sent = made.facts.fields.get(name, None)
        assert (sent is not None and (sent or name) in made.body) or told(made)[name] in ("ignored", "degraded")


def test_a_field_goes_under_the_vendors_name() -> None:
    made = plan("siliconflow", n=3, size="512x512")
    assert (made.body["batch_size"], made.body["image_size"], made.count) == (3, "512x512", 3)
    assert plan("zhipu", user="u-123456").body["user_id"] == "u-123456"


@pytest.mark.parametrize(("asked", "sent"), [("high", "hd"), ("low", "standard"), ("hd", "hd")])
def test_a_quality_becomes_the_vendors_word(asked: str, sent: str) -> None:
    made = plan("zhipu", quality=asked)
    assert made.body["quality"] == sent
    assert told(made) == ({} if asked == sent else {"quality": "degraded"})
    assert told(plan("zhipu", quality="ultra")) == {"quality": "ignored"}


def test_a_size_that_cannot_be_had_becomes_the_nearest() -> None:
    made = plan("demo", size="1792x1024")
    assert made.body["size"] == "1536x1024"
    assert told(made) == {"size": "degraded"}
    assert told(plan("demo", size="1024x1536")) == {}
    assert told(plan("xai", size="1024x1024")) == {"size": "ignored"}


def test_the_operators_sizes_come_first() -> None:
    assert plan("openai", size="1024x1024", sizes=["512x512"]).body["size"] == "512x512"
    assert plan("openai", size="4096x4096").body["size"] == "4096x4096"


@pytest.mark.parametrize(
    ("asked", "nearest"),
    [("200x200", "256x256"), ("900x900", "1024x1024"), ("2000x1000", "1536x1024"), ("what", "1024x1024")],
)
def test_proportions_come_before_the_area(asked: str, nearest: str) -> None:
    assert nearest_size(asked, ["1024x1024", "1536x1024", "256x256", "odd"]) == nearest


@pytest.mark.parametrize(
    ("options", "param"),
    [
        ({"provider": "zhipu", "images": 1}, "image"),
        ({"provider": "openai", "images": 17}, "image"),
        ({"provider": "volcengine", "images": 1, "mask": True}, "mask"),
        ({"provider": "zhipu", "n": 2}, "n"),
        ({"provider": "zhipu", "stream": True}, "stream"),
    ],
)
def test_what_cannot_be_had_is_refused(options: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestRefused) as refused:
        plan(**options)
    assert refused.value.param == param


def test_a_stream_asks_for_partial_images() -> None:
    made = plan(stream=True, partial_images=2)
    assert made.stream
    assert (made.body["stream"], made.body["partial_images"]) == (True, 2)
    late = plan(partial_images=2)
    assert (late.stream, told(late)) == (False, {"partial_images": "ignored"})
    assert "partial_images" not in late.body


def test_the_format_of_the_answer_is_our_affair() -> None:
    assert plan().answers == "b64_json"
    made = plan(response_format="url")
    assert (made.answers, told(made)) == ("url", {"response_format": "degraded"})
    assert "response_format" not in made.body
    assert told(plan("zhipu", response_format="url")) == {}
    assert plan("xai").body["response_format"] == "b64_json"
    assert plan("xai", response_format="url").body["response_format"] == "url"


def test_strict_mode_refuses_what_would_be_changed() -> None:
    with pytest.raises(RequestRefused) as refused:
        plan(model="other", strict=True)
    assert refused.value.param == "model"
    assert plan(model="gpt-image-2", strict=True).body["model"] == "gpt-image-2"
    assert plan(model="openai/gpt-image-2", strict=True).body["model"] == "gpt-image-2"
