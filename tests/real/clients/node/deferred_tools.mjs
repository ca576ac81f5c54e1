// An agent whose tools are deferred, against the gateway at argv[2]: prints what came of it as JSON.
import { Agent, Runner, setTracingDisabled, tool, toolNamespace, toolSearchTool } from "@openai/agents";
import { OpenAIProvider } from "@openai/agents-openai";

setTracingDisabled(true);
const [url, model, mode] = process.argv.slice(2);
const parameters = { type: "object", properties: {}, required: [], additionalProperties: false };
const done = [];
const make = (name, description) =>
  tool({ name, description, parameters, strict: true, deferLoading: true, execute: async () => (done.push(name), `${name} done`) });
const agent = new Agent({
  name: "Clerk",
  instructions: "Use your tools.",
  model,
  tools: [
    toolSearchTool(),
    make("send_mail", "Send a letter."),
    ...toolNamespace({ name: "tickets", description: "Support tickets.", tools: [make("close_ticket", "Settle a ticket.")] }),
  ],
});
const runner = new Runner({ modelProvider: new OpenAIProvider({ apiKey: "any", baseURL: `${url}/v1` }) });
const result = await runner.run(agent, "Close the ticket and send a letter.", { stream: mode === "streamed" });
if (mode === "streamed") await result.completed;
console.log(JSON.stringify({ answer: result.finalOutput, done, items: result.newItems.map((item) => item.type) }));
