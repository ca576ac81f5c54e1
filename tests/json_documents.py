"""Any JSON object, in all the ways that people and programs write it: for tests that must give every byte back."""

from __future__ import annotations

import json

from hypothesis import strategies as st

_SCALARS = [
    *("1", "-0.5e+3", "true", "null", '""', '"text"', '"a \\" { [ , : \\u00e9 ü"', '"\\\\"', '"// no comment"'),
    *("[]", "[ 1 ,\n [ ] , {} ]", "{}", "{ }", '{"env": {"x": "y"}}', '[{"a": "}"}]'),
]
_NAMES = ['"model"', '"permissions"', '"a \\"b\\" \\\\ ü"', '"\\u0065nv2"', '""', '"hooks"', '"x"']


@st.composite
def json_objects(draw: st.DrawFn, *, inside: tuple[str, ...] = ("env",), values: tuple[str, ...] = ()) -> str:
    """An object whose members called `inside` are objects of `values`, with any spacing that JSON allows."""
    space = st.sampled_from(["", "", " ", "\n", "\n  ", "\r\n\t", "\n\n    "])
    names = draw(st.lists(st.sampled_from([*_NAMES, *map(json.dumps, inside)]), max_size=5, unique=True))
    members = []
    for name in names:
        if name in map(json.dumps, inside):
            own = draw(st.lists(st.sampled_from(["OTHER", "PATH", *values]), max_size=4, unique=True))
            entries = [f'{draw(space)}"{each}"{draw(space)}:{draw(space)}"was {each}"{draw(space)}' for each in own]
            value = "{" + (",".join(entries) or draw(space)) + "}"
        else:
            value = draw(st.sampled_from(_SCALARS))
        members.append(f"{draw(space)}{name}{draw(space)}:{draw(space)}{value}{draw(space)}")
    return (
        draw(space)
        + "{"
        + (",".join(members) or draw(space))
        + "}"
        + draw(st.sampled_from(["", "\n", "\r\n", " \n\n"]))
    )
