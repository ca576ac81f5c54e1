"""What a configuration may say of bounds: of the work on schemas and answers, of requests, answers and the process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta

from isthmus.bridge.bounds import DEFAULT_BOUNDS
from isthmus.bridge.limits import DEFAULT_ANSWER, DEFAULT_LIMITS
from isthmus.config.schema_limits import ModelLimits, RateLimits
from isthmus.config.section import Bytes, Count, Section, Timeout
from isthmus.values.quantities import SIZE


class Checks(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How schemas, patterns and grammars of clients are compiled and checked: in processes of their own, within these
    limits. Whatever is over a `max_…` is answered with 400 and the name of the limit."""

    workers: Count = 2
    """Processes for checks that are quick. They start when they are first needed."""
    slow_workers: Count = 1
    """Processes for checks that are not, so that these do not stop the others."""
    quick: Timeout = 0.5
    """How long a check may take and still count as quick."""
    deadline: Timeout = 5.0
    """How much processor time a check may take at all (and ten times that by the clock). Then its process is killed."""
    idle: Timeout = 60.0
    """After how long without work a process ends."""
    memory: Annotated[int, Meta(ge=64_000_000, extra={"quantity": SIZE})] = 512_000_000
    """Memory of one process, where the system can bound it."""
    queue: Count = 200
    """Checks that may wait for a process; more are answered with 503."""
    wait: Timeout = 10.0
    """How long a check waits for a process; after that it is answered with 503."""
    cache: Bytes = 1_000_000
    """Memory for what was found out about schemas, so that one that comes again is not compiled again to admit it."""
    max_schema: Bytes = DEFAULT_BOUNDS.max_schema
    """Largest schema of an output format."""
    max_nodes: Count = DEFAULT_BOUNDS.max_nodes
    """Most objects and lists in one."""
    max_depth: Count = DEFAULT_BOUNDS.max_depth
    """How deeply they may be nested."""
    max_expanded: Count = DEFAULT_BOUNDS.max_expanded
    """Most objects and lists in one when every `$ref` is written out; recursion counts once."""
    max_patterns: Count = DEFAULT_BOUNDS.max_patterns
    """Most different regular expressions in one."""
    max_pattern: Count = DEFAULT_BOUNDS.max_pattern
    """Most characters in one regular expression."""
    max_pattern_total: Count = DEFAULT_BOUNDS.max_pattern_total
    """Most characters in all different regular expressions of a schema together."""
    max_regex: Bytes = DEFAULT_BOUNDS.max_regex
    """Memory that one regular expression may take once compiled."""


class Limits(RateLimits, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much one request, one answer and the whole process may take, and how much each caller. A request over one of
    `max_values` to `max_input_tokens`, with all that it refers to, is answered with 400 and the name of the limit,
    before anything is done about it. The first four hold for each key that has none of its own, and for everybody
    together who needs none; who is over one is answered with 429."""

    models: Mapping[str, ModelLimits] = {}
    """The same four for a model, all callers together: by the name that clients ask for or by `provider/model`; `*`
    stands for anything (`[limits.models."deepseek/*"]`)."""
    redis: str = ""
    """Where they are counted for many processes and machines together (`redis://…`); empty: in each process alone."""
    redis_down: Literal["allow", "refuse"] = "allow"
    """What is done while that does not answer: count in each process alone, or answer with 503."""
    redis_timeout: Timeout = 0.5
    """How long it has to answer."""
    assumed_output: Annotated[int, Meta(ge=0)] = 1024
    """Tokens that are set aside, of limits and budgets, for the answer to a request that does not say how many it may
    have."""
    unpriced: Literal["allow", "refuse"] = "allow"
    """Whether those who have a budget may ask for a model of which nobody knows the price; then it costs nothing, and
    the log says so once."""
    hold: Timeout = 60.0
    """How long the money that was set aside for what runs is missed after its process has died."""

    max_values: Count = DEFAULT_LIMITS.max_values
    """Most JSON values (texts, numbers, objects, lists; in a large request the last two may count twice) in one
    request, and in one event of an answer."""
    max_depth: Annotated[int, Meta(ge=1, le=400)] = DEFAULT_LIMITS.max_depth
    """How deeply objects and lists may be nested in a request."""
    max_fields: Count = DEFAULT_LIMITS.max_fields
    """Most fields of a request itself."""
    max_items: Count = DEFAULT_LIMITS.max_items
    """Most input items of one request, those of earlier turns and references included."""
    max_parts: Count = DEFAULT_LIMITS.max_parts
    """Most parts (texts, images, files) in the items of one request."""
    max_tools: Count = DEFAULT_LIMITS.max_tools
    """Most tools in one request, those inside namespaces and items included."""
    max_input: Bytes = DEFAULT_LIMITS.max_input
    """Bytes of all stored items that a request leads to; one that is named twice counts twice."""
    max_wide_text: Annotated[int, Meta(ge=1000)] = DEFAULT_LIMITS.max_wide_text
    """Most characters of one text that holds any outside the BMP (an emoji, say): then each of them takes four bytes,
    and everybody waits while they are put together. Any other text may be as long as `server.max_body` lets it."""
    max_inputs: Count = DEFAULT_LIMITS.max_inputs
    """Most texts of one request for embeddings."""
    max_input_tokens: Count = DEFAULT_LIMITS.max_input_tokens
    """Most tokens in all of them together, where they come as tokens."""
    max_answer: Annotated[int, Meta(ge=1, extra={"quantity": SIZE})] = DEFAULT_ANSWER.max_answer
    """Largest answer of a provider; of a stream, 256 bytes of each chunk are not counted. A longer one is cut off
    there, and the response is `incomplete`."""
    max_chunks: Count = DEFAULT_ANSWER.max_chunks
    """Most chunks of a streamed answer; likewise."""
    max_vectors: Annotated[int, Meta(ge=1, extra={"quantity": SIZE})] = DEFAULT_ANSWER.max_vectors
    """Largest answer of a provider with embeddings; a longer one is a failure (502): vectors cannot be cut."""
    max_images: Annotated[int, Meta(ge=1, extra={"quantity": SIZE})] = DEFAULT_ANSWER.max_images
    """Largest answer of a provider with images, as base64, and largest image that is fetched; a longer one is a failure
    (502)."""
    max_told: Bytes = 16_000_000
    """Events of one background response that are kept in memory for those who follow it; earlier ones are read from the
    store."""
    max_serving: Bytes = 1_000_000_000
    """Memory for all requests that are being served, four bytes for each byte of a body and of the stored items that it
    leads to; one more is answered with 503 until some of them are done."""
    max_memory: Bytes = 2_000_000_000
    """Memory of the process, where the system tells it; above it new requests are answered with 503, and running ones
    go on. 0: no limit."""
    slow_loop: Timeout = 0.5
    """A delay of everybody by so long is told in the log."""
    stuck_loop: Timeout = 5.0
    """After so long without a turn of the loop the log says where it is stuck, with its stack."""
