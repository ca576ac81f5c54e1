// OpenAI's SDK on models, token counts, embeddings and what is not served, at argv[2]: prints what came of it as JSON.
import OpenAI from "openai";

const [url, embeds, chats] = process.argv.slice(2);
const client = new OpenAI({ apiKey: "any", baseURL: `${url}/v1`, maxRetries: 0 });

async function refusal(call) {
  try {
    await call();
    return null;
  } catch (error) {
    return [error.status, error.code];
  }
}

const embed = async (options) => {
  const made = await client.embeddings.create({ model: embeds, input: ["one", "two"], ...options });
  return made.data.map((each) => Array.isArray(each.embedding) ? [...each.embedding] : each.embedding);
};

const models = [];
for await (const model of client.models.list()) models.push(model.id);
const { request_id } = await client.models.list().withResponse();

console.log(
  JSON.stringify({
    models,
    request_id,
    model: (await client.models.retrieve(embeds)).id,
    tokens: (await client.responses.inputTokens.count({ model: chats, input: "How many are these?" })).input_tokens,
    default: await embed({}),
    float: await embed({ encoding_format: "float" }),
    base64: await embed({ encoding_format: "base64" }),
    refused: {
      files: await refusal(() => client.files.list()),
      moderations: await refusal(() => client.moderations.create({ input: "x" })),
    },
    without: await refusal(() => client.embeddings.create({ model: chats, input: "x" })),
  }),
);
