// Written by scripts/door_stubs.py from workflows/src/input/call.rs and workflows/src/contract/call.rs; change the comments there.

/** What is too large to pass through Temporal, under `[calls] inputs`. */
export interface ByUri {
  uri: string;
}

export interface Message {
  role: 'system' | 'user' | 'assistant';
  content: string;
}

export interface CallInput {
  /** The model that answers, or */
  model?: string;
  /** a configured list of models. */
  route?: string;
  /** The question, or */
  prompt?: string | ByUri;
  /** several turns, the last of which asks. */
  messages?: Message[] | ByUri;
  /** The system prompt. */
  system?: string;
  /** Most output tokens. */
  max_output_tokens?: number;
  /** What happens to an answer that is cut or empty. */
  on_cut?: 'raise' | 'keep' | 'fail';
  /** JSON Schema that the answer must satisfy. */
  schema?: Record<string, unknown>;
  /** Fields of the vendor's request: temperature, seed, service tier and others. */
  parameters?: Record<string, unknown>;
  /** How much a reasoning model thinks. */
  effort?: 'none' | 'low' | 'medium' | 'high';
  /** The tenant whose budget pays. */
  tenant?: string;
  /** The group that the call belongs to; by default its workflow. */
  batch?: string;
  /** Instead of all that is asked: a body in the vendor's own form, sent as it is. */
  body?: Record<string, unknown> | ByUri;
}

export interface EmbedInput {
  /** The model that gives the vectors. */
  model: string;
  /** The texts. */
  inputs: string[] | ByUri;
  /** Dimensions of each vector. */
  dimensions?: number;
  /** Fields of the vendor's request. */
  parameters?: Record<string, unknown>;
  /** The tenant whose budget pays. */
  tenant?: string;
  /** The group that the call belongs to; by default its workflow. */
  batch?: string;
}

export interface CallOutcome {
  /** The model's answer. */
  answer?: string;
  /** The answer as JSON, if a schema was given. */
  value?: unknown;
  /** The vendor's reply as it came, if a body was given. */
  reply?: unknown;
  /** URI of the whole outcome; set instead of fields that are too large to return. */
  answer_uri?: string;
  /** Whether the answer is whole: `complete`, `cut` or `unknown`. */
  finish: string;
  /** The model that answered. */
  model: string;
  /** All input tokens, cached or not. */
  input_tokens: number;
  /** Input tokens read from a prompt cache. */
  cached_input_tokens: number;
  /** Output tokens, reasoning included. */
  output_tokens: number;
  /** Tokens and price are estimated: the provider reported no usage, or an impossible one. */
  usage_unknown?: boolean;
  /** US dollars; absent if no price is known. */
  cost_usd?: number | null;
  /** Provider calls, including the last one. */
  provider_calls: number;
}

export interface EmbedOutcome {
  /** A vector for each input, in their order; all of the same length. */
  vectors?: number[][];
  /** URI of the whole outcome; set instead of vectors that are too large to return. */
  answer_uri?: string;
  /** The model that gave them. */
  model: string;
  /** Input tokens. */
  input_tokens: number;
  /** Tokens and price are estimated: the provider reported no usage. */
  usage_unknown?: boolean;
  /** US dollars; absent if no price is known. */
  cost_usd?: number | null;
  /** Provider calls, including the last one. */
  provider_calls: number;
}
