"""Model servers of this machine for tests: at ports of their own, which the user's provider files name.

`at(home, ollama=url)` writes them; the servers that are not named get an address where nobody listens, so that no test
meets what really runs on this machine.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from isthmus.providers.find import notice_names
from isthmus.testing import Step, chat, reply

NOBODY = "http://127.0.0.1:1/v1"


def at(home: Path, **servers: str) -> None:
    """Where each server is; names are written with `_` for `-`."""
    folder = home / ".config" / "isthmus" / "providers"
    folder.mkdir(parents=True, exist_ok=True)
    for name in notice_names():
        url = servers.get(name.replace("-", "_"), NOBODY)
        (folder / f"{name}.toml").write_text(f"[endpoint]\nbase_url = '{url}'\n")


def ollama(*models: str, says: str = "from ollama") -> dict[str, Step]:
    """Its routes, as it answers them."""
    tags = [{"name": name, "model": name, "digest": "500a1f06", "details": {}} for name in models]
    show: dict[str, Any] = {
        "capabilities": ["completion", "tools"],
        "model_info": {"general.architecture": "q", "q.context_length": 40960},
    }
    return {"/api/tags": reply({"models": tags}), "/api/show": reply(show), "/v1/chat/completions": chat(says)}


def llama_cpp(model: str) -> dict[str, Step]:
    listed = {"object": "list", "data": [{"id": model, "object": "model", "owned_by": "llamacpp", "meta": {}}]}
    props = {"default_generation_settings": {"n_ctx": 4096}, "total_slots": 1}
    return {"/v1/models": reply(listed), "/props": reply(props), "/v1/chat/completions": chat("from llama")}
