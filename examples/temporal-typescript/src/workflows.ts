// Workflows that call tidegate's activities by name; the types are all that there is of tidegate here.

import { ActivityCancellationType, proxyActivities } from '@temporalio/workflow';
import type { CallInput, CallOutcome, EmbedInput, EmbedOutcome } from './tidegate';

interface Tidegate {
  'tidegate.call'(input: CallInput): Promise<CallOutcome>;
  'tidegate.embed'(input: EmbedInput): Promise<EmbedOutcome>;
}

// Time-outs as docs/temporal-door.md says; no retry policy: the failures of tidegate carry their own delay.
const options = {
  taskQueue: 'tidegate-lane-interactive',
  startToCloseTimeout: '15 minutes',
  heartbeatTimeout: '30 seconds',
} as const;

const { 'tidegate.call': call } = proxyActivities<Tidegate>(options);
const { 'tidegate.call': callOnce } = proxyActivities<Tidegate>({ ...options, retry: { maximumAttempts: 1 } });
const { 'tidegate.call': callSlowly } = proxyActivities<Tidegate>({
  ...options,
  heartbeatTimeout: '3 seconds',
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
});

export async function questions(model: string, large: string): Promise<Record<string, unknown>> {
  const ask = { model, max_output_tokens: 256, on_cut: 'keep' } as const;
  const seconds = async (number: number): Promise<number> => {
    const began = Date.now();
    await call({ ...ask, prompt: `Question ${number}: why is the sea salty?` });
    return (Date.now() - began) / 1000;
  };
  const schema = {
    type: 'object',
    properties: { city: { type: 'string' } },
    required: ['city'],
    additionalProperties: false,
  };
  const tool = {
    name: 'tide',
    description: 'The tide at a port.',
    input_schema: { type: 'object', properties: { port: { type: 'string' } } },
  };
  const messages = [{ role: 'user', content: 'When is high water at Husum?' }];
  const tools = await call({ model, body: { max_tokens: 200, tools: [tool], messages } });
  const fifty = await Promise.all(Array.from({ length: 50 }, (_, number) => seconds(number)));
  return {
    prompt: (await call({ ...ask, prompt: 'Why?' })).answer !== '',
    schema: (await call({ ...ask, prompt: 'Which city?', schema })).value,
    tools: (tools.reply as { type: string }).type,
    once: (await callOnce({ ...ask, prompt: 'Once?' })).provider_calls,
    large: (await call({ ...ask, prompt: { uri: large } })).input_tokens,
    fifty: fifty.sort((one, other) => one - other),
  };
}

export async function misspelt(model: string): Promise<void> {
  await call({ model, promt: 'Why?' } as CallInput);
}

/** To be cancelled: the call is, and gives back its turn. */
export async function slow(model: string): Promise<void> {
  await callSlowly({ model, prompt: 'Answer slowly.' });
}
