"""Any TOML document, in all the ways that people and programs write it: for tests that must give every byte back."""

from __future__ import annotations

import tomlkit
from hypothesis import strategies as st
from tomlkit.exceptions import TOMLKitError

_SCALARS = [
    *("1", "0x1F", "1_000", "-0.5", "nan", "-inf", "true", "1979-05-27T07:32:00Z", "07:32:00", "1979-05-27"),
    *('"text # no comment"', '"a \\" [b] \\u00e9"', "'C:\\dir\\'", '""', "''", '"\\\\"'),
    *('"""\nmodel = "not a key"\n[not.a.table]\n# not a comment\n"""', '"""a \\\n   b ""x"" """""', "'''\n'a''\n'''"),
    *("[]", "[ 1, 2 , ]", "[\n  1, # one\n  [ 'x', \"]\" ],\n]", "{}", "{ a = 1 , b.c = [ {d = 2} ] }", '{"x y"=1}'),
    *('"isthmus"', '"# isthmus keeps: model = 1"', '"""\n# isthmus codex setup: no mark\n"""'),
]
_KEYS = ["key", '"quoted key"', "'lit.eral'", "1234", "dotted . key", 'key."b.c".d', "model_reasoning_effort"]
_HEADS = ["table", "a.b", " 'x' . y ", "mcp_servers.one", "model_providers.local", "profiles.fast", "tui"]
_OURS = ['model = "gpt-5.5"', "'model_provider' = \"openai\"", 'model_catalog_json="/x.json"', 'model = """\n\nx"""']
_COMMENTS = ["# mine", "#", "\t# isthmus is nice", '# model = "x"', "# ünïcode"]
_INDENTS = ["", "", "", "  ", "\t"]


@st.composite
def toml_documents(draw: st.DrawFn) -> str:
    """A document with the root first, then tables; whatever is not TOML as a whole is not drawn."""
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    mixed = draw(st.booleans())
    lines: list[str] = []
    taken = 0
    left = draw(st.permutations(draw(st.sampled_from([_OURS[:3], _OURS[1:]]))))

    def add_some(heads: bool) -> None:
        nonlocal taken
        for kind in draw(
            st.lists(st.sampled_from(["key", "key", "comment", "blank", *["ours"] * (not heads)]), max_size=5)
        ):
            taken += 1
            match kind:
                case "key":
                    key = draw(st.sampled_from(_KEYS)).replace("key", f"key{taken}").replace("1234", str(taken))
                    sign = draw(st.sampled_from([" = ", "=", "\t=  "]))
                    end = draw(st.sampled_from(["", "", "  # why", "\t"]))
                    lines.append(draw(st.sampled_from(_INDENTS)) + key + sign + draw(st.sampled_from(_SCALARS)) + end)
                case "ours":
                    lines.append(draw(st.sampled_from(_INDENTS)) + (left.pop(0) if left else "# enough"))
                case "comment":
                    lines.append(draw(st.sampled_from(_INDENTS)) + draw(st.sampled_from(_COMMENTS)))
                case _:
                    lines.append(draw(st.sampled_from(_INDENTS)))

    add_some(heads=False)
    for head in draw(st.lists(st.sampled_from(_HEADS), max_size=3, unique=True)):
        array = draw(st.booleans()) and head == "table"
        lines.append(draw(st.sampled_from(_INDENTS)) + (f"[[{head}]]" if array else f"[{head}]  # head"))
        add_some(heads=True)
    ends = [draw(st.sampled_from(["\n", "\r\n"])) if mixed else newline for _ in lines]
    if ends and draw(st.booleans()):
        ends[-1] = ""
    text = "".join(line.replace("\n", newline) + end for line, end in zip(lines, ends, strict=True))
    return draw(st.sampled_from(["", "", "", "\ufeff"])) + (text if _is_valid(text) else lines[0] + newline)


def _is_valid(text: str) -> bool:
    try:
        tomlkit.parse(text).unwrap()
    except TOMLKitError:
        return False
    return True
