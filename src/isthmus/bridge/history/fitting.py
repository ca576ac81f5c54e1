"""The parts of a turn as one model can take them: what it cannot take becomes a short note, and a decision.

Every part that comes out may be sent; a dialect only spells it. Base64 is never written into text.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from isthmus.bridge.diagnostics import CompatibilityDecision, decide_item
from isthmus.bridge.types.history import Audio, File, FoundTools, Image, Media, Part, PastResult, Words, join_texts

if TYPE_CHECKING:
    from isthmus.bridge.capabilities import MessageRules

NameOf = Callable[[str, str | None], str]
"""A tool's own name and namespace → the name it has upstream."""
Fitted = Words | Media
"""A part that can be sent: a `File` with `video` set is a video, an `Image` has an address and a known detail."""

FAILED: Final = "[the tool failed]"
_VIDEO_ENDINGS: Final = frozenset({"mp4", "avi", "mov", "mkv", "webm"})
_IMAGE_ENDINGS: Final = frozenset({"png", "jpg", "jpeg", "gif", "webp"})
_TEXT_TYPES: Final = frozenset({"application/json", "application/xml", "application/yaml", "application/x-yaml"})
_AUDIO_FORMATS: Final = {"mpeg": "mp3", "x-wav": "wav", "wave": "wav", "": "wav"}
_NO_ENDING: Final = "."
_LONGEST_LABEL: Final = 500


class Fitter:
    __slots__ = ("_decisions", "_name_of", "_rules")

    def __init__(self, rules: MessageRules, name_of: NameOf, decisions: list[CompatibilityDecision]) -> None:
        self._rules, self._name_of, self._decisions = rules, name_of, decisions

    def fit(self, parts: Sequence[Part]) -> list[Fitted]:
        """For a user message: each part in its place."""
        return [part if type(part) is Words else self._fit(part) for part in parts]

    def text(self, parts: Sequence[Part]) -> str:
        """For a system message: text only."""
        why = "a system message carries text only"
        words = [self.omit(part, why) if isinstance(part, Media) else self._words(part) for part in parts]
        return join_texts(part.text for part in words)

    def told(self, result: PastResult) -> Sequence[Part]:
        """The parts of a tool's result where only words can say that the tool failed."""
        if not result.failed:
            return result.parts
        self._decide(f"{result.path}.is_error", f"told in words: `{FAILED}`")
        return (Words(FAILED), *result.parts)

    def result(self, parts: Sequence[Part]) -> tuple[list[Fitted], list[Fitted]]:
        """For a tool's result: what it carries itself, and the media that must follow in a user message."""
        fitted = self.fit(parts)
        media: list[Fitted] = [] if self._rules.tool_media else [part for part in fitted if type(part) is not Words]
        return ([self._pointer(part) for part in fitted] if media else fitted), media

    def _pointer(self, part: Fitted) -> Words:
        if isinstance(part, Words):
            return part
        self._decide(part.path, "a tool message carries text only; it was moved into the user message that follows")
        return Words(f"[{media_kind(part)}: see the user message that follows]")

    def _fit(self, part: Part) -> Fitted:
        match part:
            case Image():
                return self._image(part)
            case File():
                return self._file(part)
            case Audio():
                return self._audio(part)
            case _:
                return self._words(part)

    def _words(self, part: Words | FoundTools) -> Words:
        if isinstance(part, Words):
            return part
        if not part.tools:
            return Words("No tools found.")
        lines = [f"- {self._name_of(tool.name, tool.namespace)}{_about(tool.description)}" for tool in part.tools]
        return Words("\n".join(["These tools can be called now:", *lines]))

    def _image(self, image: Image) -> Fitted:
        rules = self._rules
        if "image" not in rules.input:
            return self.omit(image, "this model reads no images")
        if not image.url:
            return self.omit(image, "only images given by `image_url` can be sent")
        if not rules.remote_images and not image.url.startswith("data:"):
            return self.omit(image, "this provider takes images as data URLs only")
        if image.detail in ("", "low", "high", "auto"):
            return image
        nearest = "high" if image.detail == "original" else ""
        used = "`high` is the nearest" if nearest else "left to the provider"
        self._decide(f"{image.path}.detail", f"`{image.detail}` is not known upstream; {used}")
        return replace(image, detail=nearest)

    def _file(self, file: File) -> Fitted:
        media, ending, taken = media_type(file.data), _ending(file.url), self._rules.input
        if media.startswith("image/") or ending in _IMAGE_ENDINGS:
            return self._image(Image(file.path, file.data or file.url, file.detail, file.file_id))
        if media.startswith("audio/"):
            return self._audio(Audio(file.path, file.data.partition(",")[2], media.rpartition("/")[2]))
        # An address without an ending can only be a video where the model takes videos and no other files.
        unclear = ending == _NO_ENDING and "video" in taken and "file" not in taken
        if file.video or media.startswith("video/") or ending in _VIDEO_ENDINGS or unclear:
            return self._video(file)
        if "file" in taken and (file.data or (self._rules.remote_files and file.url)):
            return file
        if (text := decoded_text(file.data, media)) is not None:
            self._decide(file.path, "this model reads no files; the text of the file was put in its place")
            return Words(f"[file {_label(file) or 'without a name'}]\n{text}")
        unfit = "only files given by `file_data` can be sent" if "file" in taken else "this model reads no files"
        return self.omit(file, unfit)

    def _video(self, file: File) -> Fitted:
        if "video" not in self._rules.input:
            return self.omit(file, "this model watches no videos")
        if not (file.data or file.url):
            return self.omit(file, "only videos given by address or data can be sent")
        return replace(file, file_id="", video=True, breakpoint=None)

    def _audio(self, audio: Audio) -> Fitted:
        if "audio" not in self._rules.input:
            return self.omit(audio, "this model hears no audio")
        if not audio.data:
            return self.omit(audio, "only audio given as data can be sent")
        return Audio(audio.path, audio.data, _AUDIO_FORMATS.get(audio.format, audio.format))

    def omit(self, part: Media, why: str) -> Words:
        self._decide(part.path, f"{why}; a note was put in its place")
        label = _label(part)
        return Words(f"[{media_kind(part)} omitted: {f'{label}; ' if label else ''}{why}]")

    def ignore(self, path: str, reason: str) -> None:
        self._decisions.append(decide_item(path, "ignored", reason))

    def _decide(self, path: str, reason: str) -> None:
        self._decisions.append(decide_item(path, "degraded", reason))


def media_kind(part: Part) -> str:
    if isinstance(part, File) and (part.video or media_type(part.data).startswith("video/")):
        return "video"
    return type(part).__name__.lower()


def _label(part: Media) -> str:
    """What a note may call the thing: its name, web address or id, never its data."""
    name = part.name if isinstance(part, File) else ""
    url = part.url if part.url.startswith(("http://", "https://")) else ""
    file_id = "" if isinstance(part, Audio) else part.file_id
    return " ".join(label[:_LONGEST_LABEL] for label in (name, url, file_id) if label)


def _about(description: str) -> str:
    """The first line of a description: the declaration of the tool holds the rest."""
    first = description.strip().partition("\n")[0][:200]
    return f": {first}" if first else ""


def media_type(data: str) -> str:
    return data[5:256].partition(",")[0].partition(";")[0].lower() if data.startswith("data:") else ""


def _ending(url: str) -> str:
    """`mp4` of an address that ends so; empty where there is no address at all."""
    last = url.partition("?")[0].partition("#")[0].rpartition("/")[2]
    return last.rpartition(".")[2].lower() if "." in last else _NO_ENDING if url else ""


def decoded_text(data: str, media: str) -> str | None:
    head, _, payload = data.partition(",")
    if not (media.startswith("text/") or media in _TEXT_TYPES) or not head.endswith(";base64"):
        return None
    try:
        return base64.b64decode(payload, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return None
