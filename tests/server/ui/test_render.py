"""Templates and files of the page."""

from __future__ import annotations

from importlib.resources import files

import pytest
from jinja2 import UndefinedError

from isthmus.server.ui.render import environment, render


def test_every_template_can_be_read_and_escapes() -> None:
    names = environment().list_templates()
    assert {"base.html", "home.html", "request.html"} <= set(names)
    for name in names:
        environment().get_template(name)
        source = (files("isthmus.server.ui") / "templates" / name).read_text()
        assert "|safe" not in source, name
        assert "autoescape" not in source, name


def test_what_a_view_forgets_is_noticed() -> None:
    with pytest.raises(UndefinedError):
        render("error.html", link=str, token="", menu=(), visitor=None, at="")
