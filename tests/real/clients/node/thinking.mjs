// What two clients that read only summaries show of a model's thinking, at argv[2]: prints it as JSON.
import { createOpenAI } from "@ai-sdk/openai";
import { Agent, run, setDefaultOpenAIClient, setTracingDisabled } from "@openai/agents";
import { generateText, streamText } from "ai";
import OpenAI from "openai";

const [url, model] = process.argv.slice(2);
const baseURL = `${url}/v1`;
const isthmus = createOpenAI({ baseURL, apiKey: "any" });

const whole = await generateText({ model: isthmus(model), prompt: "Why?" });
const stream = streamText({ model: isthmus(model), prompt: "Why?" });
let streamed = "";
for await (const part of stream.fullStream) if (part.type === "reasoning-delta") streamed += part.text;

setTracingDisabled(true);
setDefaultOpenAIClient(new OpenAI({ baseURL, apiKey: "any" }));
const agent = await run(new Agent({ name: "a", model }), "Why?");
const thought = agent.newItems.find((item) => item.type === "reasoning_item");

console.log(
  JSON.stringify({ whole: whole.reasoningText, streamed, agent: thought.rawItem.content.map((part) => part.text).join("") }),
);
