// An agent with the SDK's own web search tool; what it says and what it was told of the search.
import { Agent, OpenAIProvider, Runner, setTracingDisabled, webSearchTool } from "@openai/agents";

const [url, model, mode] = process.argv.slice(2);
setTracingDisabled(true);

const agent = new Agent({
  name: "Reader",
  instructions: "Search, then answer.",
  tools: [webSearchTool({ filters: { allowedDomains: ["demo.example"] }, searchContextSize: "low" })],
});
const provider = new OpenAIProvider({ apiKey: "unused", baseURL: `${url}/v1`, useResponses: true });
const runner = new Runner({ modelProvider: provider, model });
const result = await runner.run(agent, "what do otters eat?", { stream: mode === "streamed" });
if (mode === "streamed") {
  for await (const _ of result);
  await result.completed;
}
const calls = result.newItems.filter((item) => item.type === "tool_call_item").map((item) => item.rawItem);
console.log(
  JSON.stringify({
    answer: result.finalOutput,
    calls: calls.map((call) => ({ name: call.name, status: call.status, data: call.providerData })),
  }),
);
