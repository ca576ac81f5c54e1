"""Parts as a model can take them, whatever the dialect; how each is spelled is asked of the dialects."""

from __future__ import annotations

from isthmus.bridge.capabilities import MessageRules
from isthmus.bridge.diagnostics import CompatibilityDecision
from isthmus.bridge.history.fitting import FAILED, Fitter
from isthmus.bridge.types.history import File, FoundTool, FoundTools, Image, PastResult, Words

SEES = frozenset({"image"})


def fitter(decisions: list[CompatibilityDecision], rules: MessageRules) -> Fitter:
    return Fitter(rules, lambda name, namespace: f"{namespace}__{name}" if namespace else name, decisions)


def test_a_result_keeps_its_image_where_that_is_allowed() -> None:
    decisions: list[CompatibilityDecision] = []
    parts = (Words("Seen:"), Image("p", "https://x"))
    inside, following = fitter(decisions, MessageRules(input=SEES, tool_media=True)).result(parts)
    assert (inside, following, decisions) == (list(parts), [], [])


def test_elsewhere_the_image_follows_and_the_result_says_so() -> None:
    decisions: list[CompatibilityDecision] = []
    parts = (Words("Seen:"), Image("p", "https://x"))
    inside, following = fitter(decisions, MessageRules(input=SEES)).result(parts)
    assert inside == [Words("Seen:"), Words("[image: see the user message that follows]")]
    assert following == [parts[1]]
    assert [d.path for d in decisions] == ["p"]


def test_found_tools_are_told_by_the_names_they_have_upstream() -> None:
    found = FoundTools((FoundTool("log", "git", "Shows the log.\nMore."),))
    (words,) = fitter([], MessageRules()).fit([found])
    assert words == Words("These tools can be called now:\n- git__log: Shows the log.")


def test_a_document_at_an_address_is_kept_only_where_it_can_be_fetched() -> None:
    file = File("input[0]", url="https://x.org/a.pdf")
    for remote, kept in ((True, True), (False, False)):
        rules = MessageRules(input=frozenset({"file"}), remote_files=remote)
        [fitted] = Fitter(rules, lambda name, namespace: name, []).fit([file])
        assert (fitted == file) is kept


def test_where_only_words_can_say_that_a_tool_failed_they_do() -> None:
    decisions: list[CompatibilityDecision] = []
    fits = fitter(decisions, MessageRules())
    fine, failed = PastResult((Words("ok"),), "input[1]"), PastResult((Words("no"),), "input[2]", failed=True)
    assert tuple(fits.told(fine)) == (Words("ok"),)
    assert decisions == []
    assert tuple(fits.told(failed)) == (Words(FAILED), Words("no"))
    assert [(one.path, one.action) for one in decisions] == [("input[2].is_error", "degraded")]
