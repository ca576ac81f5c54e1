"""What can go wrong between us and the Codex process, as types: each says whether held turns survive."""

from __future__ import annotations

from isthmus.bridge.dialects.codex.errors import map_rpc_error
from isthmus.errors import UpstreamFailed


class CodexGone(UpstreamFailed):
    """The process ended, or the thread was closed: what it held is lost, history can start anew elsewhere."""

    def __init__(self, message: str, *, stderr: str = "") -> None:
        super().__init__(message, code="server_error", status=502, metadata={"stderr": stderr} if stderr else None)


class RpcRefused(UpstreamFailed):
    """Codex understood a call and refused it; the process and its other threads are fine."""

    def __init__(self, method: str, rpc_code: int, rpc_message: str) -> None:
        mapped = map_rpc_error(method, rpc_message)
        super().__init__(mapped.message, code=mapped.code, status=mapped.status)
        self.rpc_code = rpc_code
        self.rpc_message = rpc_message

    @property
    def unknown_method(self) -> bool:
        return self.rpc_code == -32601 or "unknown variant" in self.rpc_message
