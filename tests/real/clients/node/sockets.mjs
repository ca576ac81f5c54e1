// OpenAI's SDK and its agents over WebSocket, against the gateway at argv[2]: prints what came of it as JSON.
import { Agent, setTracingDisabled, tool } from "@openai/agents";
import { withResponsesWebSocketSession } from "@openai/agents-openai";
import OpenAI from "openai";
import { ResponsesWS } from "openai/resources/responses/ws";
import { WebSocket } from "ws";
import { z } from "zod";

globalThis.WebSocket ??= WebSocket; // Node has its own since version 22

setTracingDisabled(true);
const [url, model, what] = process.argv.slice(2);
const baseURL = `${url}/v1`;

async function sdk() {
  const socket = new ResponsesWS(new OpenAI({ apiKey: "any", baseURL }));
  const types = [];
  const ask = (body) =>
    new Promise((resolve, reject) => {
      const take = (event) => {
        types.push(event.type);
        if (event.type !== "response.completed") return;
        socket.off("event", take);
        resolve(event.response);
      };
      socket.on("event", take);
      socket.once("error", reject);
      socket.send({ type: "response.create", model, store: false, ...body });
    });
  const first = await ask({ input: "My name is Alice." });
  const second = await ask({ input: "What is my name?", previous_response_id: first.id });
  const refused = await ask({ input: "?", previous_response_id: "resp_nobody" }).catch((error) => error);
  const third = await ask({ input: "Then anew." });
  socket.close();
  const texts = [first, second, third].map((each) => each.output[0].content[0].text);
  return { texts, types, refused: refused.error?.error?.code ?? refused.error?.code ?? refused.code ?? String(refused) };
}

async function agents() {
  const weather = tool({
    name: "weather",
    description: "The weather in a city.",
    parameters: z.object({ city: z.string() }),
    execute: async ({ city }) => `sunny in ${city}`,
  });
  const agent = new Agent({ name: "Reporter", instructions: "Use your tools.", model, tools: [weather] });
  const providerOptions = { apiKey: "any", baseURL, useResponses: true };
  return withResponsesWebSocketSession(
    async ({ run }) => {
      const first = await run(agent, "And the weather?");
      const streamed = await run(agent, "Again?", { stream: true, previousResponseId: first.lastResponseId });
      for await (const _ of streamed) {
      }
      return { texts: [first.finalOutput, streamed.finalOutput], calls: first.newItems.map((item) => item.type) };
    },
    { providerOptions },
  );
}

console.log(JSON.stringify(await { sdk, agents }[what]()));
