// Unwraps a delivery that argv[2], a JSON object, holds, with OpenAI's SDK: prints what it says as JSON.
import OpenAI from "openai";

const { body, headers, secret } = JSON.parse(process.argv[2]);
const client = new OpenAI({ apiKey: "any", webhookSecret: secret });
const event = await client.webhooks.unwrap(body, headers);
const forged = await client.webhooks.unwrap(`${body} `, headers).then(
  () => null,
  (error) => error.constructor.name,
);
console.log(JSON.stringify({ event, forged }));
