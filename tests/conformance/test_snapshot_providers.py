"""The general questions to every provider of the snapshot: one model of each kind, and one that nobody knows.

The questions are those that are asked of the files; what is asked of the file itself (its header, its globs) has no
meaning where there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from conformance import test_provider_bodies as bodies
from conformance import test_providers as files
from isthmus.config.known import usable_names
from isthmus.providers import load_provider

ABOUT_FILES = {
    "test_the_file_has_no_problems",
    "test_the_file_says_what_it_was_checked_against_and_when",
    "test_the_endpoint_can_be_called",
    "test_every_glob_matches_its_own_example_and_changes_something",
    "test_names_and_aliases_mean_one_provider_only",
    "test_what_fills_an_address_cannot_lead_to_another_house",  # at some it is the user's own: `${DATABRICKS_HOST}`
}


def general_questions() -> Iterator[tuple[str, Callable[[str], None]]]:
    for module in (files, bodies):
        for name, question in vars(module).items():
            takes = list(getattr(question, "__annotations__", {}))
            if name.startswith("test_") and takes == ["name", "return"] and name not in ABOUT_FILES:
                yield name, question


@pytest.mark.parametrize("name", usable_names())
def test_it_answers_the_general_questions(name: str) -> None:
    for asked, question in general_questions():
        try:
            question(name)
        except AssertionError as error:
            error.add_note(f"asked: {asked}")
            raise


@pytest.mark.parametrize("name", usable_names())
def test_its_endpoint_can_be_called(name: str) -> None:
    """At an address of its own, or of this machine, that has at most blanks to fill."""
    endpoint = load_provider(name).endpoint
    assert endpoint.base_url.startswith(("https://", "http://127.0.0.1", "http://localhost", "${"))
    assert not endpoint.base_url.endswith("/")
    assert endpoint.key_env


def test_enough_is_asked_of_enough() -> None:
    assert len(usable_names()) > 100
    assert len(list(general_questions())) > 25
