// The official SDK of Anthropic for TypeScript: what it makes of the gateway's answers, as one JSON object.
import Anthropic from "@anthropic-ai/sdk";

const [baseURL, model] = process.argv.slice(2);
const client = new Anthropic({ baseURL, apiKey: "any", maxRetries: 0 });
const tools = [{ name: "look", input_schema: { type: "object", properties: { at: { type: "string" } } } }];
const asked = { model, max_tokens: 4000, tools, thinking: { type: "adaptive" } };
const messages = [{ role: "user", content: "hi" }];

const created = await client.messages.create({ model, max_tokens: 100, messages });
const stream = client.messages.stream({ ...asked, messages });
const first = await stream.finalMessage();
const call = first.content.find((block) => block.type === "tool_use");
messages.push({ role: "assistant", content: first.content });
messages.push({ role: "user", content: [{ type: "tool_result", tool_use_id: call.id, content: "seen" }] });
const last = await client.messages.create({ ...asked, messages });
const counted = await client.messages.countTokens({ model, messages, tools });
const models = [];
for await (const found of client.models.list({ limit: 5 })) models.push(found.id);
let error = null;
try {
  await client.messages.create({ model, max_tokens: 100, messages: [{ role: "user", content: "hi" }] });
} catch (raised) {
  error = { status: raised.status, type: raised.error?.error?.type };
}
console.log(
  JSON.stringify({
    created: created.content.at(-1).text,
    kinds: first.content.map((block) => block.type),
    input: call.input,
    answer: last.content.at(-1).text,
    counted: counted.input_tokens,
    models: models.filter((id) => !id.startsWith("claude-")),
    error,
  }),
);
