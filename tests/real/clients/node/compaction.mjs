// An agent whose session is compacted after its first turn, against the gateway at argv[2]: prints what came of it as JSON.
import { Agent, MemorySession, Runner, setTracingDisabled } from "@openai/agents";
import { OpenAIProvider, OpenAIResponsesCompactionSession } from "@openai/agents-openai";
import OpenAI from "openai";

setTracingDisabled(true);
const [url, model] = process.argv.slice(2);
const client = new OpenAI({ apiKey: "any", baseURL: `${url}/v1` });
let compacted = 0;
const session = new OpenAIResponsesCompactionSession({
  client,
  model,
  underlyingSession: new MemorySession(),
  compactionMode: "input",
  shouldTriggerCompaction: () => !compacted++,
});
const agent = new Agent({ name: "Builder", instructions: "Build.", model });
const runner = new Runner({ modelProvider: new OpenAIProvider({ openAIClient: client }) });
const first = await runner.run(agent, "Build a red bridge.", { session });
const kept = (await session.getItems()).map((item) => item.type ?? "message");
const second = await runner.run(agent, "Go on.", { session });
console.log(JSON.stringify({ answers: [first.finalOutput, second.finalOutput], kept }));
