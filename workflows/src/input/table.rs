//! Every field of a batch's input as users see it: its flag of `tidegate run` with the help, and
//! its row of the reference page. A field is declared here and in
//! [`BatchInput`](super::BatchInput), which says how it is read.

use std::{fmt, str::FromStr};

use tidegate_types::{Effort, Lane, ModelId, Tenant};

use super::{
    field::{ALWAYS, Field, Flag, Takes},
    read::{Word, word},
};
use crate::contract::{Attach, Deadline, LongHow, Mode, OnCut, ResultsAs, Task};

fn is_word<T: Word>(text: &str) -> Result<(), String> {
    word::<T>(text).map(drop)
}

fn is_name<T: FromStr<Err: fmt::Display>>(text: &str) -> Result<(), String> {
    text.parse::<T>().map(drop).map_err(|error| error.to_string())
}

/// All fields, in the order of the help and of the page.
pub const FIELDS: &[Field] = &[
    Field::new("source", "", "where the documents are: a folder, file, glob or prefix").flag(Flag::new(
        Takes::Documents,
        "SOURCE",
        "A folder, a file or a glob; or an object-store prefix (s3://, gs://, az://)",
    )),
    Field::new("documents", "", "in place of `source`: a list of URIs"),
    Field::new("manifest", "", "in place of `source`: a JSONL object of `{\"id\",\"uri\"}` lines"),
    Field::new("output", "required", "a prefix for the results")
        .flag(Flag::new(
            Takes::Results,
            "OUT",
            "Where the results go: a folder, or an object-store prefix",
        ).short('o').required_unless(ALWAYS)),
    Field::new(
        "instructions",
        "required, but for `task: embed`",
        "what to do with each document",
    )
    .flag(Flag::new(
        Takes::Instructions,
        "TEXT|@FILE",
        "What to do with each document; @FILE reads it from a file",
    ).short('i').required_unless(&["messages", "task"])),
    Field::new(
        "task",
        "`answer`",
        "`embed`: each document's text becomes [a vector](embeddings.md)",
    )
    .flag(Flag::new(
        Takes::Word(is_word::<Task>),
        "TASK",
        "What becomes of each document: answer, or embed, which makes a vector of its text [default: answer]",
    )),
    Field::new("dimensions", "the model's own", "numbers of each vector, with `task: embed`")
        .flag(Flag::new(
            Takes::Number,
            "N",
            "Numbers of each vector [default: as many as the model likes]",
        ).requires("task")),
    Field::new(
        "template",
        "false",
        "[variables](words.md) in what is said: `{{ document }}`, `{{ id }}`, a record's fields",
    )
    .flag(Flag::new(
        Takes::Nothing,
        "",
        "{{ document }}, {{ id }}, {{ name }} and a record's own fields in the instructions stand for what they are of each document",
    )),
    Field::new("system", "none", "[a system prompt](words.md); the instructions stand before the document then")
        .flag(Flag::new(
            Takes::Text,
            "TEXT|@FILE",
            "The system prompt; the instructions stand before the document then. @FILE reads it from a file",
        )),
    Field::new("messages", "none", "[several turns](words.md) in place of `instructions`")
        .flag(Flag::new(
            Takes::Turns,
            "FILE",
            "Several turns in place of the instructions: a JSON list of {\"role\", \"content\"}, the last of which is about the document",
        ).excludes("instructions")),
    Field::new("examples", "none", "[documents with their answers](words.md), shown to the model first")
        .flag(Flag::new(
            Takes::Source,
            "FILE",
            "Documents with the answers that are wanted of them, shown to the model first: a JSONL file of {\"document\", \"answer\"}, or its URI",
        )),
    Field::new("model", "required, or `route`", "`provider:model`, as configured")
        .flag(Flag::new(
            Takes::Word(is_name::<ModelId>),
            "MODEL",
            "provider:model, such as anthropic:claude-sonnet-5",
        ).short('m').required_unless(&["route"]).excludes("route")),
    Field::new("route", "", "in place of `model`: a configured list of models").flag(Flag::new(
        Takes::Word(|_| Ok(())),
        "ROUTE",
        "A configured list of models in place of one",
    )),
    Field::new("lane", "`batch`", "`interactive`, `standard`, `batch`, or a configured lane").flag(Flag::new(
        Takes::Word(is_name::<Lane>),
        "LANE",
        "The class of traffic: interactive, standard, batch, or a configured lane [default: batch]",
    )),
    Field::new(
        "tenant",
        "`default`",
        "whose budget pays, and whose turn it is among those of a lane",
    )
    .flag(Flag::new(Takes::Word(is_name::<Tenant>), "TENANT", "Whose budget pays [default: default]")),
    Field::new(
        "max_output_tokens",
        "the least of: the model's own cap, what it writes within `request-timeout` (16,384 until its speed is known), a tenth of the tightest limit that output counts towards; 4,096 where the provider holds what is allowed (OpenAI, Bedrock, compatible servers)",
        "per document; of a route, the least of its models. It only stops an answer that does not end: quota, budgets, forecast and packs go by what is expected, at first 1,024 tokens at most",
    )
    .flag(Flag::new(
        Takes::Number,
        "N",
        "Output tokens per document at most [default: what the model and its limits allow]",
    )),
    Field::new(
        "on_cut",
        "`raise`",
        "an answer that is cut at `max_output_tokens`, or empty: `raise` asks again with four times the room, twice at most; `keep` takes it and flags it; `fail` fails the document",
    )
    .flag(Flag::new(
        Takes::Word(is_word::<OnCut>),
        "WHAT",
        "What becomes of an answer that is cut at --max-output-tokens, or empty: raise (ask again with more room), keep (take and flag it) or fail [default: raise]",
    )),
    Field::new(
        "results",
        "`jsonl`",
        "or `parquet`: sealed parts and all results together as [tables](scale.md#the-results)",
    )
    .flag(Flag::new(
        Takes::Word(is_word::<ResultsAs>),
        "FORMAT",
        "As what results are written together: jsonl or parquet [default: jsonl]",
    )),
    Field::new(
        "results_jsonl",
        "up to 100,000 documents",
        "whether all results are put together in one object too",
    ),
    Field::new(
        "per_document",
        "true",
        "`false`: a result's own object goes when its shard is sealed; the sealed parts hold all of them",
    ),
    Field::new(
        "schema",
        "none",
        "JSON Schema, passed to the provider in its native form; each answer is checked, and a wrong one asked for once more with what was wrong",
    )
    .flag(Flag::new(Takes::Schema, "FILE", "JSON Schema that each answer must satisfy")),
    Field::new(
        "checks",
        "none",
        "[what each answer must pass](checks.md): a list of `{\"name\",\"expression\"}` or `{\"name\",\"judge\":{\"model\",\"instructions\"}}`; what fails is asked for once more with what was wrong",
    )
    .flag(Flag::new(
        Takes::List,
        "FILE",
        "What each answer must pass: a JSON list of {\"name\", \"expression\"} or {\"name\", \"judge\": {\"model\", \"instructions\"}}",
    )),
    Field::new(
        "escalate",
        "false",
        "with `route` and `checks`: the first model is asked about each document, and [the next about what fails its checks](checks.md#the-next-model)",
    )
    .flag(Flag::new(
        Takes::Nothing,
        "",
        "What fails its checks goes to the next model of the route",
    ).requires("checks")),
    Field::new(
        "evidence",
        "false",
        "each field of the answer comes with [the words of the document](evidence.md) that it rests on, looked for in the text that was sent",
    )
    .flag(Flag::new(
        Takes::Nothing,
        "",
        "Each field of the answer comes with the words of the document that it rests on",
    )),
    Field::new(
        "max_in_flight",
        "what the limits can use",
        "documents in flight at once, without an upper bound of ours",
    )
    .flag(Flag::new(Takes::Number, "N", "Documents in flight at once [default: what the limits can use]")),
    Field::new(
        "retry_budget",
        "documents × 3",
        "provider calls beyond the first of each document, for one run of the whole batch; unless stated, a document in parts adds three for each of its further calls",
    )
    .flag(Flag::new(
        Takes::LargeNumber,
        "N",
        "Provider calls beyond the first of each document, for the whole batch [default: three for each document]",
    )),
    Field::new("budget_usd", "none", "US dollars that the batch may spend in all its runs").flag(Flag::new(
        Takes::Dollars,
        "USD",
        "US dollars that the batch may spend in all [default: no limit of its own]",
    )),
    Field::new(
        "long",
        "none",
        "documents of more tokens than `chunk_tokens` are read in parts: `map_reduce` makes one answer of the parts' answers, `per_chunk` puts them side by side",
    )
    .flag(Flag::new(
        Takes::Word(is_word::<LongHow>),
        "HOW",
        "How documents are read that are too long for one call: map_reduce or per_chunk",
    )),
    Field::new("chunk_tokens", "20000", "tokens of a part of a long document at most")
        .flag(Flag::new(
            Takes::Number,
            "N",
            "Tokens of a part of a long document at most [default: 20000]",
        ).requires("long")),
    Field::new(
        "records",
        "false",
        "`true`: each row of a CSV or Parquet file and each line of a JSONL file is a document, in archives and compressed (`rows.csv.gz`) too; `{\"id\":…,\"text\":…}` names the fields to take",
    )
    .flag(Flag::new(
        Takes::Nothing,
        "",
        "Each row of a CSV file and each line of a JSONL file is a document",
    )),
    Field::new("records.id", "", "")
        .flag(Flag::new(
            Takes::Word(|_| Ok(())),
            "FIELD",
            "The field that names a record [default: they are numbered]",
        ).long("record-id").requires("records")),
    Field::new("records.text", "", "")
        .flag(Flag::new(
            Takes::Word(|_| Ok(())),
            "FIELD",
            "The field that is a record's text [default: all fields]",
        ).long("record-text").requires("records")),
    Field::new(
        "lines",
        "none",
        "in place of all that says what is asked: each line of `source` is a request in a vendor's own form, as [the HTTP door](http-batches.md) starts them: `{\"endpoint\":\"/v1/chat/completions\"}`",
    ),
    Field::new(
        "attach",
        "`text`",
        "`auto`: pages of PDFs without readable text go as pictures beside the text of the others, twenty a document at most; `native`: PDFs go to the provider as they are, scans too",
    )
    .flag(Flag::new(
        Takes::Word(is_word::<Attach>),
        "HOW",
        "How PDFs go to the provider: text; auto, with pages whose text is missing as pictures; or native, for models that read the pages themselves",
    )),
    Field::new(
        "mode",
        "`direct`",
        "`economy`: through the provider's batch API, at half the price, within a day and apart from the limits of a minute ([how](batches.md))",
    )
    .flag(Flag::new(
        Takes::Word(is_word::<Mode>),
        "MODE",
        "economy: through the provider's batch API, at half the price and within a day [default: direct]",
    )),
    Field::new(
        "deadline",
        "none",
        "a time (`2026-12-01T08:00:00Z`) or a span (`12h`): with an hour to spare, documents go through the batch API, and what has no answer in time goes directly",
    )
    .flag(Flag::new(
        Takes::Word(is_word::<Deadline>),
        "WHEN",
        "When the batch must be done, such as 12h or 2026-12-01T08:00:00Z. With time to spare, it costs half",
    )),
    Field::new(
        "pack",
        "none",
        "small documents share calls, where requests are scarcer than tokens: at most so many in each, or with `true` as many as it takes for tokens to bind",
    )
    .flag(Flag::new(
        Takes::NumberOrNothing,
        "N",
        "Small documents share calls: so many in each, or as many as spare requests are worth",
    )),
    Field::new(
        "effort",
        "the model's",
        "how much a reasoning model thinks: `none`, `low`, `medium`, `high`; room for it is added to the default of `max_output_tokens`",
    )
    .flag(Flag::new(
        Takes::Word(is_word::<Effort>),
        "HOW",
        "How much a reasoning model thinks: none, low, medium or high [default: as the model's section says, else as much as it likes]",
    )),
    Field::new(
        "parameters",
        "none",
        "[fields of the vendor's request](providers/README.md#parameters): `{\"temperature\": 0, \"seed\": 7, \"service_tier\": \"flex\"}`; unknown ones need `\"allow_unknown\": true` among them",
    )
    .flag(Flag::new(
        Takes::Object,
        "JSON|@FILE",
        "Fields of the vendor's request as a JSON object, such as '{\"temperature\": 0}'; @FILE reads it from a file",
    )),
    Field::new(
        "sample",
        "none",
        "only so many documents, drawn at random from every kind and size; the same instructions draw the same ones, whichever model is asked, and the whole batch, later and into the same output, does not buy them again",
    )
    .flag(Flag::new(
        Takes::Number,
        "N",
        "Only so many documents, drawn at random; the whole batch, into the same output, does not buy them again",
    )),
    Field::new(
        "truth",
        "none",
        "a JSONL object of `{\"id\",\"expected\"}` lines: the report says how many of these documents' answers [agree with it](agreement.md), by field",
    )
    .flag(Flag::new(
        Takes::Source,
        "FILE",
        "What answers should be, as JSONL of {\"id\",\"expected\"}: the report says how many agree, by field",
    )),
    Field::new(
        "webhook",
        "none",
        "[a configured webhook](webhooks.md), which is told when the batch has ended",
    )
    .flag(Flag::new(
        Takes::Word(|_| Ok(())),
        "NAME",
        "A configured webhook, which is told when the batch has ended",
    )),
    Field::new(
        "replace",
        "false",
        "the output holds answers to another question: what differs is asked again, and replaced",
    )
    .flag(Flag::new(
        Takes::Nothing,
        "",
        "The output holds answers to another question: ask again what differs, and replace it",
    )),
    Field::new(
        "reread",
        "false",
        "what an older version of the reader has read is read anew, and asked anew where its text differs, and only there",
    )
    .flag(Flag::new(
        Takes::Nothing,
        "",
        "Read anew what an older version of the reader has read, and ask anew where its text differs",
    )),
];
