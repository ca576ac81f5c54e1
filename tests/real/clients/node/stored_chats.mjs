// OpenAI's SDK on stored chat completions, against the gateway at argv[2]: prints what came of it as JSON.
import OpenAI from "openai";

const [url, model, mark] = process.argv.slice(2);
const { chat } = new OpenAI({ apiKey: "any", baseURL: `${url}/v1`, maxRetries: 0 });
const messages = [{ role: "user", content: "hi" }];

const made = [];
for (const n of ["0", "1", "2"]) {
  const completion = await chat.completions.create({ model, messages, store: true, metadata: { mark, n } });
  made.push(completion.id);
}
const listed = [];
for await (const completion of chat.completions.list({ metadata: { mark }, limit: 2 })) listed.push(completion.id);
const found = (await chat.completions.retrieve(made[1])).choices[0].message.content;
const { metadata: changed } = await chat.completions.update(made[1], { metadata: { mark, n: "one" } });
const said = [];
for await (const message of chat.completions.messages.list(made[1])) said.push([message.content, message.content_parts]);
const { deleted } = await chat.completions.delete(made[1]);
const missing = await chat.completions.retrieve(made[1]).then(
  () => null,
  (error) => error.status,
);
console.log(JSON.stringify({ made, listed, found, changed, messages: said, deleted, missing }));
