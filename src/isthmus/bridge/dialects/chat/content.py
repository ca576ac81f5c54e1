"""The parts of a turn → `content` of a chat message: text where text will do, parts where the model can see.

In: parts and the model's message rules. Out: a string, or a list of chat parts. What the model cannot
take becomes a short note in the text and a decision; base64 is never written into text.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from isthmus.bridge.diagnostics import CompatibilityDecision
from isthmus.bridge.types.history import Audio, File, FoundTools, Image, Part, Words, join_texts
from isthmus.protocol.json import JsonObject

if TYPE_CHECKING:
    from isthmus.bridge.capabilities import MessageRules

NameOf = Callable[[str, str | None], str]
"""A tool's own name and namespace → the name it has upstream."""

_VIDEO_ENDINGS: Final = frozenset({"mp4", "avi", "mov", "mkv", "webm"})
_IMAGE_ENDINGS: Final = frozenset({"png", "jpg", "jpeg", "gif", "webp"})
_TEXT_TYPES: Final = frozenset({"application/json", "application/xml", "application/yaml", "application/x-yaml"})
_AUDIO_FORMATS: Final = {"mpeg": "mp3", "x-wav": "wav", "wave": "wav", "": "wav"}
_NO_ENDING: Final = "."
_LONGEST_LABEL: Final = 500


class ContentWriter:
    """Writes the contents of one request's messages, and collects what had to be said about them."""

    __slots__ = ("_decisions", "_name_of", "_rules")

    def __init__(self, rules: MessageRules, name_of: NameOf, decisions: list[CompatibilityDecision]) -> None:
        self._rules = rules
        self._name_of = name_of
        self._decisions = decisions

    def content(self, parts: Sequence[Part]) -> str | list[JsonObject]:
        """For a user message: a string if all of it is text, else a list of parts in their order."""
        if len(parts) == 1 and isinstance(parts[0], Words):
            return parts[0].text
        written = [self._write(part) for part in parts]
        texts = [piece for piece in written if isinstance(piece, str)]
        if len(texts) == len(written):
            return join_texts(texts)
        return [text_part(piece) if isinstance(piece, str) else piece for piece in written]

    def text(self, parts: Sequence[Part]) -> str:
        """For a system message: text only."""
        return join_texts(
            self._omit(part, "a system message carries text only")
            if isinstance(part, Image | File | Audio)
            else self._text(part)
            for part in parts
        )

    def output(self, parts: Sequence[Part]) -> tuple[str, list[JsonObject]]:
        """For a tool message: its text, and the media that must follow in a user message."""
        if len(parts) == 1 and isinstance(parts[0], Words):
            return parts[0].text, []
        texts: list[str] = []
        media: list[JsonObject] = []
        for part in parts:
            piece = self._write(part)
            if isinstance(piece, str):
                texts.append(piece)
            else:
                media.append(piece)
                texts.append(f"[{_kind(part)}: see the user message that follows]")
                reason = "a tool message carries text only; it was moved into the user message that follows"
                self._decide(_path(part), reason)
        return join_texts(texts), media

    def _write(self, part: Part) -> str | JsonObject:
        match part:
            case Image():
                return self._image(part)
            case File():
                return self._file(part)
            case Audio():
                return self._audio(part)
            case _:
                return self._text(part)

    def _text(self, part: Words | FoundTools) -> str:
        if isinstance(part, Words):
            return part.text
        if not part.tools:
            return "No tools found."
        lines = [f"- {self._name_of(tool.name, tool.namespace)}{_about(tool.description)}" for tool in part.tools]
        return "\n".join(["These tools can be called now:", *lines])

    def _image(self, image: Image) -> str | JsonObject:
        rules = self._rules
        if "image" not in rules.input:
            return self._omit(image, "this model reads no images")
        if not image.url:
            return self._omit(image, "only images given by `image_url` can be sent")
        if not rules.remote_images and not image.url.startswith("data:"):
            return self._omit(image, "this provider takes images as data URLs only")
        shape: JsonObject = {"url": image.url}
        if image.detail in ("low", "high", "auto"):
            shape["detail"] = image.detail
        elif image.detail == "original":
            shape["detail"] = "high"
            self._decide(f"{image.path}.detail", "`original` is not known upstream; `high` is the nearest")
        elif image.detail:
            self._decide(f"{image.path}.detail", f"`{image.detail}` is not known upstream; left to the provider")
        return {"type": "image_url", "image_url": shape}

    def _file(self, file: File) -> str | JsonObject:
        media, ending = _media_type(file.data), _ending(file.url)
        if media.startswith("image/") or ending in _IMAGE_ENDINGS:
            return self._image(Image(file.path, file.data or file.url, file.detail, file.file_id))
        if media.startswith("audio/"):
            return self._audio(Audio(file.path, file.data.partition(",")[2], media.rpartition("/")[2]))
        if file.video or media.startswith("video/") or self._is_video_address(ending):
            return self._video(file)
        if "file" in self._rules.input and file.data:
            shape = {"filename": file.name, "file_data": file.data} if file.name else {"file_data": file.data}
            return {"type": "file", "file": shape}
        if (text := _decoded_text(file.data, media)) is not None:
            self._decide(file.path, "this model reads no files; the text of the file was put in its place")
            return f"[file {_label(file) or 'without a name'}]\n{text}"
        if "file" in self._rules.input:
            return self._omit(file, "only files given by `file_data` can be sent")
        return self._omit(file, "this model reads no files")

    def _is_video_address(self, ending: str) -> bool:
        """An address without an ending can only be a video where the model takes videos and no other files."""
        if ending in _VIDEO_ENDINGS:
            return True
        return ending == _NO_ENDING and "video" in self._rules.input and "file" not in self._rules.input

    def _video(self, file: File) -> str | JsonObject:
        if "video" not in self._rules.input:
            return self._omit(file, "this model watches no videos")
        address = file.data or file.url
        if not address:
            return self._omit(file, "only videos given by address or data can be sent")
        shape: JsonObject = {"url": address}
        if file.detail in ("low", "high"):
            shape["detail"] = file.detail
        return {"type": "video_url", "video_url": shape}

    def _audio(self, audio: Audio) -> str | JsonObject:
        if "audio" not in self._rules.input:
            return self._omit(audio, "this model hears no audio")
        if not audio.data:
            return self._omit(audio, "only audio given as data can be sent")
        form = _AUDIO_FORMATS.get(audio.format, audio.format)
        return {"type": "input_audio", "input_audio": {"data": audio.data, "format": form}}

    def _omit(self, part: Image | File | Audio, why: str) -> str:
        self._decide(part.path, f"{why}; a note was put in its place")
        label = _label(part)
        return f"[{_kind(part)} omitted: {label}; {why}]" if label else f"[{_kind(part)} omitted: {why}]"

    def _decide(self, path: str, reason: str) -> None:
        self._decisions.append(CompatibilityDecision(path, "degraded", reason, code="bridge.item.degraded"))


def text_part(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _kind(part: Part) -> str:
    if isinstance(part, File) and (part.video or _media_type(part.data).startswith("video/")):
        return "video"
    return type(part).__name__.lower()


def _path(part: Part) -> str:
    return part.path if isinstance(part, Image | File | Audio) else ""


def _label(part: Image | File | Audio) -> str:
    """What a note may call the thing: its name, web address or id, never its data."""
    name = part.name if isinstance(part, File) else ""
    url = part.url if part.url.startswith(("http://", "https://")) else ""
    file_id = "" if isinstance(part, Audio) else part.file_id
    return " ".join(label[:_LONGEST_LABEL] for label in (name, url, file_id) if label)


def _about(description: str) -> str:
    """The first line of a description: the declaration of the tool holds the rest."""
    first = description.strip().partition("\n")[0][:200]
    return f": {first}" if first else ""


def _media_type(data: str) -> str:
    if not data.startswith("data:"):
        return ""
    return data[5:256].partition(",")[0].partition(";")[0].lower()


def _ending(url: str) -> str:
    """`mp4` of an address that ends so; empty where there is no address at all."""
    if not url:
        return ""
    last = url.partition("?")[0].partition("#")[0].rpartition("/")[2]
    return last.rpartition(".")[2].lower() if "." in last else _NO_ENDING


def _decoded_text(data: str, media: str) -> str | None:
    """The text inside a data URL of a text type."""
    if not (media.startswith("text/") or media in _TEXT_TYPES):
        return None
    head, _, payload = data.partition(",")
    if not head.endswith(";base64"):
        return None
    try:
        return base64.b64decode(payload, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return None
