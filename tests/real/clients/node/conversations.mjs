// Conversations of the gateway at argv[2], with the client that argv[4] names: prints what came of it as JSON.
import OpenAI from "openai";

const [url, model, client] = process.argv.slice(2);
const openai = new OpenAI({ apiKey: "any", baseURL: `${url}/v1`, maxRetries: 0 });
const collect = async (pages) => {
  const items = [];
  for await (const item of pages) items.push(item);
  return items;
};
const say = (told) => console.log(JSON.stringify(told));

if (client === "openai") {
  const made = await openai.conversations.create({ items: [{ type: "message", role: "user", content: "one" }] });
  await openai.conversations.update(made.id, { metadata: { a: "b" } });
  const { metadata } = await openai.conversations.retrieve(made.id);
  const items = Array.from({ length: 20 }, (_, number) => ({ type: "message", role: "user", content: `${number}` }));
  await openai.conversations.items.create(made.id, { items });
  const listed = (await collect(openai.conversations.items.list(made.id, { order: "asc", limit: 6 }))).map((item) => item.content[0].text);
  const last = (await openai.conversations.items.list(made.id, { limit: 1 })).data[0];
  const newest = (await openai.conversations.items.retrieve(last.id, { conversation_id: made.id })).content[0].text;
  await openai.conversations.items.delete(last.id, { conversation_id: made.id });
  const status = (asking) => asking.then(() => 200, (error) => error.status);
  const gone = [await status(openai.conversations.items.retrieve(last.id, { conversation_id: made.id }))];
  const { deleted } = await openai.conversations.delete(made.id);
  gone.push(await status(openai.conversations.retrieve(made.id)));
  const { id } = await openai.conversations.create({});
  await openai.responses.create({ model, input: "I am Ann.", conversation: id });
  const response = await openai.responses.create({ model, input: "Who am I?", conversation: { id } });
  say({ listed, metadata, newest, deleted, gone, id, echo: response.conversation.id });
} else if (client === "agents") {
  const { Agent, Runner, setTracingDisabled } = await import("@openai/agents");
  const { OpenAIConversationsSession, OpenAIProvider } = await import("@openai/agents-openai");
  setTracingDisabled(true);
  const session = new OpenAIConversationsSession({ client: openai });
  const runner = new Runner({ modelProvider: new OpenAIProvider({ openAIClient: openai }) });
  const agent = new Agent({ name: "Clerk", model });
  const answers = [];
  for (const words of ["I am Ann.", "Who am I?"]) answers.push((await runner.run(agent, words, { session })).finalOutput);
  const kept = (await collect(openai.conversations.items.list(await session.getSessionId(), { order: "asc" }))).map((item) => item.type);
  say({ answers, kept });
} else {
  const { generateText, jsonSchema, stepCountIs, streamText, tool } = await import("ai");
  const { createOpenAI } = await import("@ai-sdk/openai");
  const provider = createOpenAI({ apiKey: "any", baseURL: `${url}/v1` });
  const { id } = await openai.conversations.create({});
  const inputSchema = jsonSchema({ type: "object", properties: { city: { type: "string" } }, required: ["city"], additionalProperties: false });
  const tools = { weather: tool({ description: "The weather.", inputSchema, execute: async ({ city }) => `sunny in ${city}` }) };
  const answers = [];
  for (const prompt of ["Weather in Rome?", "Which city was it?"]) {
    const asked = { model: provider.responses(model), prompt, tools, stopWhen: stepCountIs(3), providerOptions: { openai: { conversation: id } } };
    answers.push(client === "ai" ? (await generateText(asked)).text : await streamText(asked).text);
  }
  const kept = (await collect(openai.conversations.items.list(id, { order: "asc" }))).map((item) => item.type);
  say({ answers, kept });
}
