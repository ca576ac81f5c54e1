// An agent that leaves an MCP server to the gateway at argv[2]: prints what came of it as JSON.
import { Agent, Runner, hostedMcpTool, setTracingDisabled } from "@openai/agents";
import { OpenAIProvider } from "@openai/agents-openai";

setTracingDisabled(true);
const [url, model, mode, serverUrl, approval] = process.argv.slice(2);
const asked = [];
const always = {
  requireApproval: "always",
  onApproval: async (_, request) => (asked.push(request.rawItem?.name ?? request.name), { approve: true }),
};
const agent = new Agent({
  name: "Reporter",
  instructions: "Use your tools.",
  model,
  tools: [
    hostedMcpTool({ serverLabel: "mine", serverUrl, ...(approval === "always" ? always : { requireApproval: "never" }) }),
  ],
});
const runner = new Runner({ modelProvider: new OpenAIProvider({ apiKey: "any", baseURL: `${url}/v1` }) });
const result = await runner.run(agent, "Weather in Riga?", { stream: mode === "streamed" });
if (mode === "streamed") await result.completed;
console.log(JSON.stringify({ answer: result.finalOutput, asked, items: result.newItems.map((item) => item.type) }));
