// A background response left in the middle and read on, with OpenAI's SDK against the gateway at argv[2]: prints JSON.
import OpenAI from "openai";

const [url, model] = process.argv.slice(2);
const client = new OpenAI({ apiKey: "any", baseURL: `${url}/v1`, maxRetries: 0 });

const left = await client.responses.create({ model, input: "hi", background: true, stream: true });
let id, last;
const numbers = [];
for await (const event of left) {
  if (event.type === "response.created") id = event.response.id;
  numbers.push((last = event.sequence_number));
  if (event.type === "response.output_text.delta") break;
}
// The helper asks for all of it, and leaves out what was seen by itself.
const again = client.responses.stream({ response_id: id, starting_after: last });
for await (const event of again) numbers.push(event.sequence_number);
const text = (await again.finalResponse()).output_text;
const rest = [];
for await (const event of await client.responses.retrieve(id, { stream: true, starting_after: 2 })) {
  rest.push(event.sequence_number);
}
const { status } = await client.responses.retrieve(id);
const cancelled = (await client.responses.cancel(id)).status;
console.log(JSON.stringify({ id, numbers, text, rest, status, cancelled }));
