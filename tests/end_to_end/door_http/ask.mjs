// Many calls at once through the vendors' own SDKs for node, as they come, and what became of them as JSON.
//
// Usage: node ask.mjs MODULES URL KEY CALLS

import { createRequire } from "node:module";

const [modules, url, key, calls] = process.argv.slice(2);
const require = createRequire(modules + "/");
const OpenAI = require("openai").default;
const Anthropic = require("@anthropic-ai/sdk").default;

const openai = new OpenAI({ apiKey: key, baseURL: url + "/v1" });
const anthropic = new Anthropic({ apiKey: key, baseURL: url });

async function many(ask) {
  const asked = Array.from({ length: Number(calls) }, (_, number) => ask(`Question ${number}`));
  const all = await Promise.allSettled(asked);
  const failed = all.filter((one) => one.status === "rejected" || !one.value);
  return { answered: all.length - failed.length, failed: failed.map((one) => String(one.reason).slice(0, 300)) };
}

const user = (text) => [{ role: "user", content: text }];
const chat = async (text) =>
  (await openai.chat.completions.create({ model: "openai:m", messages: user(text) })).choices[0].message.content;
const message = async (text) =>
  (await anthropic.messages.create({ model: "anthropic:m", max_tokens: 50, messages: user(text) })).content[0].text;

console.log(JSON.stringify({ openai: await many(chat), anthropic: await many(message) }));
