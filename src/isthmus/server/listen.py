"""Where we listen: a port or a file, opened before anything else is begun; and the certificate that we show."""

from __future__ import annotations

import errno
import os
import socket
import ssl
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from isthmus.config.schema import Server
from isthmus.errors import ConfigError
from isthmus.server.paths import clean_prefix

_UNSENT: Final = 64 * 1024
"""Bytes that may wait in the kernel for a client's turn; those under way to it are not counted."""
_BACKLOG: Final = 2048
_MODE: Final = 0o660
"""Who may use our Unix socket: the user and the group that we run as."""


@dataclass(frozen=True, slots=True)
class Listening:
    socket: socket.socket
    address: str
    """For people: `http://127.0.0.1:8484`, `unix:/run/isthmus.sock`."""
    path: Path | None = None
    file: int = 0
    """Which file it is (its inode): another gateway may have put its own in place."""

    def close(self) -> None:
        self.socket.close()
        if self.path is not None:
            with suppress(OSError):
                if self.path.lstat().st_ino == self.file:
                    self.path.unlink()


def listen(server: Server) -> Listening:
    if server.unix_socket:
        path = Path(server.unix_socket).expanduser().absolute()
        listener = _listen_on_path(path)
        return Listening(listener, f"unix:{path}", path, path.lstat().st_ino)
    listener = _listen_on_port(server.host, server.port)
    return Listening(listener, _address(listener, "https" if server.tls_cert else "http"))


def share(server: Server, descriptor: int) -> Listening:
    """What another process opened for us: closing it here closes it for nobody else, and the file it may have stays."""
    listener = socket.socket(fileno=descriptor)
    if server.unix_socket:
        return Listening(listener, f"unix:{server.unix_socket}")
    return Listening(listener, _address(listener, "https" if server.tls_cert else "http"))


def public_url(server: Server) -> str:
    """Where clients find it, by its settings; `unix:PATH` for a file."""
    if server.unix_socket:
        return f"unix:{server.unix_socket}"
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(server.host, server.host)
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if server.tls_cert else 'http'}://{shown}:{server.port}{clean_prefix(server.path_prefix)}"


def tls_context(server: Server) -> ssl.SSLContext | None:
    """The certificate, if there is one; refused with words if it cannot be used."""
    if not server.tls_cert and not server.tls_key:
        return None
    if not server.tls_cert or not server.tls_key:
        missing = "tls_key" if server.tls_cert else "tls_cert"
        raise ConfigError(
            f"TLS needs both `server.tls_cert` and `server.tls_key`; set `server.{missing}`", param=f"server.{missing}"
        )
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.set_alpn_protocols(["http/1.1"])
    load_certificate(context, server)
    return context


def load_certificate(context: ssl.SSLContext, server: Server) -> None:
    """Read the files (again): connections from now on are shown what is in them."""
    try:
        context.load_cert_chain(Path(server.tls_cert).expanduser(), Path(server.tls_key).expanduser(), _no_password)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        reason = error.strerror if type(error) is not ssl.SSLError and isinstance(error, OSError) else str(error)
        raise ConfigError(
            f"the certificate `{server.tls_cert}` with the key `{server.tls_key}` cannot be used: {reason}; both are "
            "PEM files, the certificate with its chain, the key without a password",
            param="server.tls_cert",
        ) from error


def _no_password() -> str:
    raise ValueError("the key has a password")  # OpenSSL would ask the terminal for it


def _listen_on_port(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as below: for those that are accepted
    if hasattr(socket, "TCP_NOTSENT_LOWAT"):
        # Accepted sockets inherit it. Without it the kernel takes megabytes for a client that does not read, and
        # the upstream is slowed down only when those are full.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT)
    try:
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        advice, param = _advice(error, port)
        raise ConfigError(f"cannot listen on {host}:{port}: {error.strerror}; {advice}", param=param) from error
    listener.setblocking(False)
    return listener


def _advice(error: OSError, port: int) -> tuple[str, str]:
    """What to do about it, and which setting that is about."""
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        return "`--host` must be an address of this machine, such as 127.0.0.1 or 0.0.0.0", "server.host"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"ports below 1024 are for administrators: choose another with `{_another(8484)}`", "server.port"
    return f"choose another with `{_another(port + 1 if port < 65_535 else port - 1)}`", "server.port"


def _another(port: int) -> str:
    """How whoever started us names another port: `make` hands no flag on."""
    return f"make run PORT={port}" if os.environ.get("STARTED_BY") == "make run" else f"--port {port}"


def _listen_on_path(path: Path) -> socket.socket:
    if not hasattr(socket, "AF_UNIX"):
        raise ConfigError("this system has no Unix sockets; leave `server.unix_socket` out", param="server.unix_socket")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _clear(path)
        before = os.umask(0o777 & ~_MODE)
        try:
            listener.bind(str(path))
        finally:
            os.umask(before)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        reason = error.strerror or str(error)
        raise ConfigError(f"cannot listen on `{path}`: {reason}", param="server.unix_socket") from error
    listener.setblocking(False)
    return listener


def _clear(path: Path) -> None:
    """Take away the socket of a gateway that is gone; whatever else lies there is left alone."""
    try:
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise FileExistsError(17, "there is a file that is no socket")
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        other.settimeout(1)
        try:
            other.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
    raise FileExistsError(98, "another gateway listens there")


def _address(listener: socket.socket, scheme: str) -> str:
    host, port = listener.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
