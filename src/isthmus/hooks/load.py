"""Names in the configuration → hooks: `my_company.hooks:Redact`, or `guard.py:Guard` for a file.

What a name leads to is a class, which is made without arguments, or an object that is used as it is. Everything is
found out at start: that it is there, that it is a hook, that its methods take what they will be given.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Sequence
from hashlib import sha256
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any, Final, get_args

from isthmus.errors import ConfigError
from isthmus.hooks import Stage
from isthmus.hooks.hooked import Named

_ARGUMENTS: Final[dict[Stage, int]] = {"before_plan": 2, "before_send": 3, "after_reply": 2}


def load_hooks(uses: Sequence[str], folder: str = "") -> list[Named]:
    """In their order; `folder` is where files, and modules that are not installed, are looked for."""
    if folder and folder not in sys.path:
        sys.path.append(folder)  # last: nothing of ours or of the installation is hidden by it
    return [_load(reference, folder, f"hooks.uses[{index}]") for index, reference in enumerate(uses)]


def _load(reference: str, folder: str, param: str) -> Named:
    place, colon, name = reference.rpartition(":")
    if not colon or not place or not name.isidentifier():
        raise _problem(f"`{reference}` names no hook; write `module:Name`, or `file.py:Name`", param)
    try:
        module = _load_file(Path(folder, place).expanduser()) if place.endswith(".py") else _load_module(place)
        found: Any = getattr(module, name)
        hook = found() if isinstance(found, type) else found
    except AttributeError as error:
        raise _problem(f"`{place}` has no `{name}`; name a class or an object in it", param) from error
    except Exception as error:
        raise _problem(f"`{reference}` cannot be loaded: {type(error).__name__}: {error}", param) from error
    _check(hook, reference, param)
    return Named(reference, hook)


def _load_module(name: str) -> Any:
    return importlib.import_module(name)


def _load_file(path: Path) -> Any:
    """Once for what is written in it: after a change it is another module; who uses the old one goes on with that."""
    path = path.absolute()
    if not path.is_file():
        raise FileNotFoundError(f"there is no file `{path}`")
    source = path.read_bytes()
    name = f"isthmus_hooks_{path.stem}_{sha256(bytes(path) + bytes(1) + source).hexdigest()[:16]}"
    if name in sys.modules:
        return sys.modules[name]
    loader = SourceFileLoader(name, str(path))
    spec = importlib.util.spec_from_loader(name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    try:
        exec(loader.source_to_code(source, str(path)), module.__dict__)  # a compiled one may be older than a second
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _check(hook: object, reference: str, param: str) -> None:
    stages: tuple[Stage, ...] = get_args(Stage)
    methods = {stage: getattr(hook, stage) for stage in stages if hasattr(hook, stage)}
    if not methods:
        raise _problem(f"`{reference}` is no hook: it has none of {', '.join(f'`{each}`' for each in stages)}", param)
    for stage, method in methods.items():
        try:
            inspect.signature(method).bind(*range(_ARGUMENTS[stage]))
        except (TypeError, ValueError) as error:
            wanted = "body, sending, context" if stage == "before_send" else "request, context"
            words = f"`{reference}.{stage}` cannot be called with ({wanted}): {error}"
            raise _problem(words, param) from error


def _problem(words: str, param: str) -> ConfigError:
    return ConfigError(words, param=param)
