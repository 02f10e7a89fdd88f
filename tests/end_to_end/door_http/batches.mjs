// Batches through the vendors' own SDKs for node, as they come, and what became of them as JSON.
//
// Usage: node batches.mjs MODULES URL KEY LINES

import { createRequire } from "node:module";

const [modules, url, key, lines] = process.argv.slice(2);
const require = createRequire(modules + "/");
const { default: OpenAI, toFile } = require("openai");
const Anthropic = require("@anthropic-ai/sdk").default;

const openai = new OpenAI({ apiKey: key, baseURL: url + "/v1" });
const anthropic = new Anthropic({ apiKey: key, baseURL: url });

const user = (text) => [{ role: "user", content: text }];
const numbers = Array.from({ length: Number(lines) }, (_, number) => number);
const soon = () => new Promise((resolve) => setTimeout(resolve, 100));

async function chat() {
  const line = (custom_id, body) => JSON.stringify({ custom_id, method: "POST", url: "/v1/chat/completions", body });
  const asked = numbers.map((number) =>
    line(`q-${number}`, { model: "openai:m", max_tokens: 50, messages: user(`Question ${number}`) }),
  );
  asked.push(line("unknown", { model: "openai:other", messages: user("?") }));
  const file = await openai.files.create({
    file: await toFile(Buffer.from(asked.join("\n")), "requests.jsonl"),
    purpose: "batch",
  });
  let batch = await openai.batches.create({
    input_file_id: file.id,
    endpoint: "/v1/chat/completions",
    completion_window: "24h",
  });
  while (!["completed", "failed", "expired", "cancelled"].includes(batch.status)) {
    await soon();
    batch = await openai.batches.retrieve(batch.id);
  }
  const read = async (id) => (await (await openai.files.content(id)).text()).trim().split("\n").map((it) => JSON.parse(it));
  const output = await read(batch.output_file_id);
  const listed = [];
  for await (const one of openai.batches.list({ limit: 1 })) listed.push(one.id);
  return {
    status: batch.status,
    counts: batch.request_counts,
    ids: output.map((one) => one.custom_id),
    words: output.every((one) => one.response.body.choices[0].message.content),
    errors: (await read(batch.error_file_id)).map((one) => one.custom_id),
    listed: listed.includes(batch.id),
    deleted: (await openai.files.delete(file.id)).deleted,
  };
}

async function messages() {
  const params = (text, model) => ({ model, max_tokens: 50, messages: user(text) });
  const requests = numbers.map((number) => ({
    custom_id: `q-${number}`,
    params: params(`Question ${number}`, "anthropic:claude-sonnet-5"),
  }));
  requests.push({ custom_id: "unknown", params: params("?", "anthropic:other") });
  let batch = await anthropic.messages.batches.create({ requests });
  while (batch.processing_status !== "ended") {
    await soon();
    batch = await anthropic.messages.batches.retrieve(batch.id);
  }
  const results = [];
  for await (const one of await anthropic.messages.batches.results(batch.id)) results.push(one);
  const good = results.filter((one) => one.result.type === "succeeded");
  return {
    counts: batch.request_counts,
    ids: results.map((one) => one.custom_id),
    words: good.every((one) => one.result.message.content[0].text),
    deleted: (await anthropic.messages.batches.delete(batch.id)).type,
  };
}

console.log(JSON.stringify({ chat: await chat(), messages: await messages() }));
