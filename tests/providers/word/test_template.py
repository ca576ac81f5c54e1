"""What real templates refuse, by their own sentences; the rest of a template is not ours to understand."""

from __future__ import annotations

import pytest

from isthmus.providers.word.template import read_template
from isthmus.providers.word.told import NOTHING, Word

ALTERNATING = Word(turns="alternating", system="leading")
# Cut down to the lines that decide who may speak when; the sentences are the vendors' own (2026-11-16).
ASKED = Word(needs_user=True)
TEMPLATES = {
    "Mistral Small 3.2": (
        "{%- for message in loop_messages %}{%- if (message['role'] == 'user') != (ns.index % 2 == 0) %}"
        "{{- raise_exception('After the optional system message, conversation roles must alternate user and assistant"
        " roles except for tool calls and results.') }}{%- endif %}{%- endfor %}",
        ALTERNATING,
    ),
    "Mistral 7B v0.3": (
        '{{- raise_exception("After the optional system message, conversation roles must alternate'
        ' user/assistant/user/assistant/...") }}',
        ALTERNATING,
    ),
    "Mistral, only two roles": (
        "{{ raise_exception('Only user and assistant roles are supported, with the exception of an initial optional"
        " system message!') }}",
        Word(system="leading"),
    ),
    "Gemma 2": (
        "{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
        "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
        "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}",
        ALTERNATING,
    ),
    "Gemma 3": (
        '{{ raise_exception("Conversation roles must alternate user/assistant/user/assistant/...") }}',
        ALTERNATING,
    ),
    "Qwen3.5": (
        "{{- raise_exception('System message must be at the beginning.') }}"
        "{{- raise_exception('No user query found in messages.') }}{{- raise_exception('Unexpected message role.') }}",
        Word(system="leading", needs_user=True),
    ),
    "Qwen3": (
        '{%- if (message.role == "user") or (message.role == "system" and not loop.first) %}'
        "{{- '<|im_start|>' + message.role }}{%- endif %}",
        NOTHING,
    ),
    "Llama 3": (
        "{%- if messages[0]['role'] == 'system' %}{%- set messages = messages[1:] %}{%- endif %}"
        '{{- raise_exception("This model only supports single tool-calls at once!") }}',
        NOTHING,
    ),
    "ChatML": ("{% for message in messages %}{{'<|im_start|>' + message['role']}}{% endfor %}", NOTHING),
    "a comment raises nothing": ("{# raise_exception('roles must alternate') #}x", NOTHING),
    "what stands between comments and after them raises": (
        "{# a #}{{ raise_exception('System role not supported') }}{# b #}{{ raise_exception('No user query found') }}",
        Word(system="leading", needs_user=True),
    ),
    "a comment without an end is none": (
        "{# a #}{# {{ raise_exception('No user query found') }}",
        Word(needs_user=True),
    ),
    "a sentence of a prompt raises nothing": ("{{ 'Conversation roles must alternate.' }}", NOTHING),
    "no user after a tool": (
        "{{ raise_exception('A user message is not allowed after a tool result') }}",
        Word(after_tool="assistant"),
    ),
}


@pytest.mark.parametrize("name", TEMPLATES)
def test_templates_say_what_they_refuse(name: str) -> None:
    text, word = TEMPLATES[name]
    assert read_template(text) == word


@pytest.mark.parametrize("text", ["", "raise_exception(" * 20_000, "raise_exception('" + "a" * 200_000, "{#" * 50_000])
def test_a_template_without_an_end_is_read_in_no_time(text: str) -> None:
    assert read_template(text) == NOTHING
