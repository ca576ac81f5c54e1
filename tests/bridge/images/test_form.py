"""Forms with files: what SDKs send is read, what is no form is refused, and what we write is read again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.bridge.images.form import FORM, MAX_PARTS, Part, is_form, read_form, write_form
from isthmus.errors import RequestRefused

KIND = f"{FORM}; boundary=xx"
SENT = (
    b'--xx\r\nContent-Disposition: form-data; name="prompt"\r\n\r\na fox\r\n'
    b'--xx\r\nContent-Disposition: form-data; name="image[]"; filename="a \\"b\\".png"\r\n'
    b"Content-Type: image/png\r\n\r\n\x89PNG\r\n--x\r\n\r\n\x00\r\n--xx--\r\n"
)


def test_texts_and_files_come_apart() -> None:
    assert read_form(SENT, KIND) == [
        Part("prompt", b"a fox"),
        Part("image", b"\x89PNG\r\n--x\r\n\r\n\x00", "image/png", 'a "b".png'),
    ]


@pytest.mark.parametrize("kind", [KIND, 'Multipart/Form-Data; charset=utf-8; boundary="xx"'])
def test_a_boundary_may_be_quoted(kind: str) -> None:
    assert is_form(kind)
    assert len(read_form(b"preamble\r\n" + SENT + b"epilogue", kind)) == 2


@pytest.mark.parametrize("kind", ["application/json", "", "multipart/mixed; boundary=xx"])
def test_anything_else_is_no_form(kind: str) -> None:
    assert not is_form(kind)


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (SENT, FORM),
        (SENT, f"{FORM}; boundary={'x' * 71}"),
        (SENT, f"{FORM}; boundary=other"),
        (b"", KIND),
        (SENT[:-20], KIND),
        (b"--xx\r\nname: prompt\r\n\r\na\r\n--xx--", KIND),
        (b"--xx\r\n" + b"a" * 5000 + b"\r\n\r\n\r\n--xx--", KIND),
        (b"--xxno line end" + b"\r\n--xx--", KIND),
    ],
)
def test_what_is_broken_is_refused(raw: bytes, kind: str) -> None:
    with pytest.raises(RequestRefused) as refused:
        read_form(raw, kind)
    assert refused.value.code == "invalid_body"


def test_so_many_parts_and_no_more() -> None:
    part = b'--xx\r\nContent-Disposition: form-data; name="a"\r\n\r\n\r\n'
    assert len(read_form(part * MAX_PARTS + b"--xx--", KIND)) == MAX_PARTS
    with pytest.raises(RequestRefused, match=f"more than {MAX_PARTS} parts"):
        read_form(part * (MAX_PARTS + 1) + b"--xx--", KIND)


@given(st.lists(st.tuples(st.sampled_from(["prompt", "image", "mask"]), st.binary(max_size=200)), max_size=6))
def test_what_is_written_is_read_again(given_parts: list[tuple[str, bytes]]) -> None:
    parts = [Part(name, data, "image/png", "a.png") for name, data in given_parts]
    kind, body = write_form(parts)
    if parts:
        assert read_form(body, kind) == parts
    assert write_form(parts) == (kind, body)


def test_a_name_cannot_break_out_of_its_line() -> None:
    kind, body = write_form([Part('a"\r\nx-evil: 1', b"1", filename='b"\r\n')])
    (part,) = read_form(body, kind)
    assert b"x-evil: 1\r\n" not in body
    assert part.name == "a___x-evil: 1"
