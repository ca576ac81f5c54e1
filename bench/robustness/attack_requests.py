"""What clients did to the gateway: schemas, grammars, references and bodies that cost far more than they weigh."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from bench.robustness.attack_scene import Scene
from bench.robustness.client import Client

Json = dict[str, Any]


async def doubled_schemas(scene: Scene) -> str:
    """R1: each level of 2 kB refers twice to the one below it."""
    said = []
    for levels in (28, 40):
        definitions: Json = {"d0": {"type": "string"}}
        for level in range(1, levels):
            definitions[f"d{level}"] = {"allOf": [{"$ref": f"#/$defs/d{level - 1}"}] * 2}
        schema = {"$defs": definitions, "$ref": f"#/$defs/d{levels - 1}"}
        said += [scene.no_fault_of_ours(await scene.post(each), f"{levels} levels") for each in _with_schema(schema)]
    return ", ".join(said)


async def patterns(scene: Scene) -> str:
    """R2: many Unicode classes with long counts, and one pattern of 10 MB."""
    many = {f"p{i}": {"type": "string", "pattern": f"^\\p{{L}}{{{100 + i}}}[0-9a-f]{{{100 + i}}}$"} for i in range(300)}
    long = {"a": {"type": "string", "pattern": "a?" * (500_000 if scene.small else 5_000_000)}}
    said = []
    for what, properties in (("300 patterns", many), ("a long one", long)):
        schema = {"type": "object", "properties": properties}
        said += [scene.no_fault_of_ours(await scene.post(each), what) for each in _with_schema(schema)]
    return ", ".join(said)


def _with_schema(schema: Json) -> list[Json]:
    """In every place where a schema may stand."""
    form = {"type": "json_schema", "name": "f", "schema": schema, "strict": True}
    tool = {"type": "function", "name": "f", "parameters": schema, "strict": True}
    return [{"input": "hi", "text": {"format": form}}, {"input": "hi", "tools": [tool]}]


async def references(scene: Scene) -> str:
    """R7: 22 kB of references to one large item."""
    large = "x" * (100_000 if scene.small else 1_000_000)
    stored = await scene.post({"input": [{"role": "user", "content": large}]})
    listed = await Client.open(scene.gateway.port)
    async with listed:
        items = (await listed.request("GET", f"/v1/responses/{stored.json['id']}/input_items")).json["data"]
    reference = {"type": "item_reference", "id": items[0]["id"]}
    return scene.no_fault_of_ours(await scene.post({"input": [reference] * 500}), "500 references")


async def large_bodies(scene: Scene) -> str:
    """R8: bodies that are small for a network and large for whoever takes them apart."""
    less = 20 if scene.small else 1
    image = {"type": "input_image", "image_url": "x"}
    tool = {"type": "function", "name": "f", "parameters": {}}
    call = {"type": "function_call", "name": "f", "arguments": "{}"}
    output = {"type": "function_call_output", "output": "x"}
    said = {"role": "user", "content": "x"}
    bodies: dict[str, Any] = {
        "images": {"input": [{"role": "user", "content": [image] * (300_000 // less)}]},
        "lists": b'{"input":"x","metadata":[' + b"[]," * (13_000_000 // less) + b"[]]}",
        "tools": {"input": "x", "tools": [{**tool, "name": f"f{i}"} for i in range(100_000 // less)]},
        "items": {"input": [said] * (300_000 // less)},
        "pairs": {"input": [{**each, "call_id": f"c{i}"} for i in range(30_000 // less) for each in (call, output)]},
        "nesting": b'{"input":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
        "one string": {"input": "x" * (30_000_000 // less)},
        "fields": {"input": "x", **{f"field{i}": i for i in range(200_000 // less)}},
    }
    told = []
    for name, body in bodies.items():
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        del body
        told.append(scene.no_fault_of_ours(await scene.post(data), name))
        scene.look()
    return ", ".join(told)


async def many_large_bodies(scene: Scene) -> str:
    """R8: twenty bodies of 45 MB at once."""
    data = b'{"input":"' + b"x" * (2_000_000 if scene.small else 45_000_000) + b'"}'
    replies = await asyncio.gather(*(scene.post(data) for _ in range(20)))
    counted: dict[int, int] = {}
    for reply in replies:
        scene.no_fault_of_ours(reply, "one of twenty")
        counted[reply.status] = counted.get(reply.status, 0) + 1
    return ", ".join(f"{count} times {status}" for status, count in sorted(counted.items()))


async def grammars(scene: Scene) -> str:
    """R19: a regular expression of 90 kB, thousands of parentheses, a grammar that doubles itself."""
    doubling = "\n".join(["start: a20", *(f"a{i}: a{i - 1} a{i - 1}" for i in range(1, 21)), 'a0: "x"'])
    said = []
    for what, syntax, text in (
        ("90 kB", "regex", "(a|b)?" * 15_000),
        ("parentheses", "regex", "(" * 7_000 + "a" + ")" * 7_000),
        ("lark parentheses", "lark", "start: " + "(" * 7_000 + '"a"' + ")" * 7_000),
        ("doubling", "lark", doubling),
        ("counts", "regex", "((a{1,1000}){1,1000}){1,1000}"),
    ):
        tool = {"type": "custom", "name": "f", "format": {"type": "grammar", "syntax": syntax, "definition": text}}
        said.append(scene.no_fault_of_ours(await scene.post({"input": "x", "tools": [tool]}), what))
    return ", ".join(said)


async def half_sent_bodies(scene: Scene) -> str:
    """R14: a thousand connections that promise a body and do not send it; the next client is served."""
    count = 200 if scene.small else 1_001
    clients = []
    try:
        for _ in range(count):
            client = await Client.open(scene.gateway.port)
            clients.append(client)
            head = "POST /v1/responses HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 1000\r\n\r\n{"
            client._writer.write(head.encode())
        reply = await scene.post({"input": "hi"})
        scene.expect(reply.status == 200, f"beside half-sent bodies: {reply.status} {reply.body[:200]!r}")
    finally:
        for client in clients:
            client.leave()
    return f"{count} of them, then {reply.status}"


async def odd_heads(scene: Scene) -> str:
    """R16: addresses that cannot be read, no host, two hosts."""
    body = b'{"input": "hi"}'
    heads = {
        "Origin: http://[": "host: 127.0.0.1\r\norigin: http://[\r\n",
        "Host: [": "host: [\r\n",
        "no host": "",
        "two hosts": "host: 127.0.0.1\r\nhost: example.com\r\n",
    }
    said = []
    for what, lines in heads.items():
        async with await Client.open(scene.gateway.port) as client:
            head = f"POST /v1/responses HTTP/1.1\r\n{lines}content-length: {len(body)}\r\n\r\n"
            client._writer.write(head.encode() + body)
            async with asyncio.timeout(30):
                status = await client.head()
        scene.expect(400 <= status < 500, f"{what}: {status}")
        said.append(f"{what} {status}")
    return ", ".join(said)
