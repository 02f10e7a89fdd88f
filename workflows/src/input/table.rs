//! Every field of a batch's input as users see it: its flag of `tidegate run` with the help, and
//! its row of the reference page. A field is declared here and in
//! [`BatchInput`](super::BatchInput), which says how it is read.

use std::{fmt, str::FromStr};

use tidegate_types::{Effort, Lane, ModelId, Tenant};

use crate::{
    contract::{Attach, Deadline, LongHow, Mode, OnCut, ResultsAs, Task},
    input::{
        field::{ALWAYS, Field, Flag, Takes},
        read::{Word, word},
    },
};

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
        "answer, or embed, which turns each document's text into a vector [default: answer]",
    )),
    Field::new("dimensions", "the model's own", "length of each vector, with `task: embed`")
        .flag(Flag::new(
            Takes::Number,
            "N",
            "Length of each vector [default: the model's own]",
        ).requires("task")),
    Field::new(
        "template",
        "false",
        "replace [variables](words.md) in `instructions`, `system` and `messages`: `{{ document }}`, `{{ id }}`, a record's fields",
    )
    .flag(Flag::new(
        Takes::Nothing,
        "",
        "Replace {{ document }}, {{ id }}, {{ name }} and record fields in the instructions",
    )),
    Field::new("system", "none", "[a system prompt](words.md); the instructions then go before the document")
        .flag(Flag::new(
            Takes::Text,
            "TEXT|@FILE",
            "The system prompt; the instructions then go before the document. @FILE reads it from a file",
        )),
    Field::new("messages", "none", "[several turns](words.md) in place of `instructions`")
        .flag(Flag::new(
            Takes::Turns,
            "FILE",
            "Several turns in place of the instructions: a JSON list of {\"role\", \"content\"}; the last one asks about the document",
        ).excludes("instructions")),
    Field::new("examples", "none", "[documents with their answers](words.md), shown to the model first")
        .flag(Flag::new(
            Takes::Source,
            "FILE",
            "Example documents with their answers, shown to the model first: a JSONL file of {\"document\", \"answer\"}, or its URI",
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
        "whose budget pays; the tenants of a lane take turns",
    )
    .flag(Flag::new(Takes::Word(is_name::<Tenant>), "TENANT", "Whose budget pays [default: default]")),
    Field::new(
        "max_output_tokens",
        "chosen by the model and its limits; see [below](#the-default-of-max_output_tokens)",
        "maximum output of a document, in tokens",
    )
    .flag(Flag::new(
        Takes::Number,
        "N",
        "Maximum output of a document, in tokens [default: what the model and its limits allow]",
    )),
    Field::new(
        "on_cut",
        "`raise`",
        "what happens to an answer that is empty or cut at `max_output_tokens`: `raise` asks again with four times the room, twice at most; `keep` takes it and flags it; `fail` fails the document",
    )
    .flag(Flag::new(
        Takes::Word(is_word::<OnCut>),
        "WHAT",
        "What to do with an answer that is empty or cut at --max-output-tokens: raise (ask again with more room), keep (take and flag it) or fail [default: raise]",
    )),
    Field::new(
        "results",
        "`jsonl`",
        "format of the sealed parts and of the combined results: `jsonl` or `parquet` ([tables](scale.md#the-results))",
    )
    .flag(Flag::new(
        Takes::Word(is_word::<ResultsAs>),
        "FORMAT",
        "Format of the combined results: jsonl or parquet [default: jsonl]",
    )),
    Field::new(
        "results_jsonl",
        "up to 100,000 documents",
        "whether to combine all results in one object, too",
    ),
    Field::new(
        "per_document",
        "true",
        "`false`: remove a result's own object when its shard is sealed; the sealed parts hold all results",
    ),
    Field::new(
        "schema",
        "none",
        "JSON Schema, passed to the provider in its native form; each answer is checked; after a wrong answer the model is asked once more, with the fault",
    )
    .flag(Flag::new(Takes::Schema, "FILE", "JSON Schema that each answer must satisfy")),
    Field::new(
        "checks",
        "none",
        "[what each answer must pass](checks.md): a list of `{\"name\",\"expression\"}` or `{\"name\",\"judge\":{\"model\",\"instructions\"}}`; after a failed check the model is asked once more, with the fault",
    )
    .flag(Flag::new(
        Takes::List,
        "FILE",
        "Checks of each answer: a JSON list of {\"name\", \"expression\"} or {\"name\", \"judge\": {\"model\", \"instructions\"}}",
    )),
    Field::new(
        "escalate",
        "false",
        "with `route` and `checks`: a document whose answer fails its checks goes to [the next model](checks.md#the-next-model)",
    )
    .flag(Flag::new(
        Takes::Nothing,
        "",
        "Ask the next model of the route about documents whose answers fail their checks",
    ).requires("checks")),
    Field::new(
        "evidence",
        "false",
        "for each field of the answer, quote [the words of the document](evidence.md) that support it; the quote is looked up in the text",
    )
    .flag(Flag::new(
        Takes::Nothing,
        "",
        "For each field of the answer, quote the words of the document that support it",
    )),
    Field::new(
        "max_in_flight",
        "what the limits can use",
        "maximum number of documents in flight; tidegate has no upper bound",
    )
    .flag(Flag::new(Takes::Number, "N", "Maximum number of documents in flight [default: what the limits can use]")),
    Field::new(
        "retry_budget",
        "documents × 3",
        "provider calls beyond the first of each document, in one run of the batch; the default grows by three for each further call of a document in parts",
    )
    .flag(Flag::new(
        Takes::LargeNumber,
        "N",
        "Provider calls beyond the first of each document, for the whole batch [default: three for each document]",
    )),
    Field::new("budget_usd", "none", "US dollars that the batch may spend in all its runs").flag(Flag::new(
        Takes::Dollars,
        "USD",
        "US dollars that the batch may spend in all its runs [default: no limit]",
    )),
    Field::new(
        "long",
        "none",
        "read documents of more than `chunk_tokens` in parts: `map_reduce` combines the parts' answers into one, `per_chunk` lists them",
    )
    .flag(Flag::new(
        Takes::Word(is_word::<LongHow>),
        "HOW",
        "Read documents that are too long for one call in parts: map_reduce (one combined answer) or per_chunk (an answer for each part)",
    )),
    Field::new("chunk_tokens", "20000", "maximum tokens of a part of a long document")
        .flag(Flag::new(
            Takes::Number,
            "N",
            "Maximum tokens of a part of a long document [default: 20000]",
        ).requires("long")),
    Field::new(
        "records",
        "false",
        "`true`: each row of a CSV or Parquet file and each line of a JSONL file is a document, also in archives and compressed files (`rows.csv.gz`); `{\"id\":…,\"text\":…}` names the fields to use",
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
        "in place of instructions and model: each line of `source` is a request in a vendor's own form, as [the HTTP door](http-batches.md) starts them: `{\"endpoint\":\"/v1/chat/completions\"}`",
    ),
    Field::new(
        "attach",
        "`text`",
        "`auto`: send pages of PDFs without readable text as pictures, at most twenty a document, and the other pages as text; `native`: send PDFs as they are, scans included",
    )
    .flag(Flag::new(
        Takes::Word(is_word::<Attach>),
        "HOW",
        "How to send PDFs: text; auto (pages without text as pictures); or native, for models that read PDFs [default: text]",
    )),
    Field::new(
        "mode",
        "`direct`",
        "`economy`: use [the provider's batch API](batches.md), at half the price, within a day, and outside the limits of a minute",
    )
    .flag(Flag::new(
        Takes::Word(is_word::<Mode>),
        "MODE",
        "economy: use the provider's batch API, at half the price and within a day [default: direct]",
    )),
    Field::new(
        "deadline",
        "none",
        "a time (`2026-12-01T08:00:00Z`) or a span (`12h`): with an hour to spare, documents go through the batch API; those without an answer in time are called directly",
    )
    .flag(Flag::new(
        Takes::Word(is_word::<Deadline>),
        "WHEN",
        "Time by which the batch must be done, such as 12h or 2026-12-01T08:00:00Z; with time to spare it costs half",
    )),
    Field::new(
        "pack",
        "none",
        "put up to this number of small documents into one call, or with `true` as many as tidegate chooses: useful if requests are scarcer than tokens",
    )
    .flag(Flag::new(
        Takes::NumberOrNothing,
        "N",
        "Put up to N small documents into one call; without N tidegate chooses",
    )),
    Field::new(
        "effort",
        "the model's",
        "how much a reasoning model thinks: `none`, `low`, `medium`, `high`; the default of `max_output_tokens` grows with it",
    )
    .flag(Flag::new(
        Takes::Word(is_word::<Effort>),
        "HOW",
        "How much a reasoning model thinks: none, low, medium or high [default: as configured for the model, else the model's own]",
    )),
    Field::new(
        "parameters",
        "none",
        "[fields of the vendor's request](providers/README.md#parameters): `{\"temperature\": 0, \"seed\": 7, \"service_tier\": \"flex\"}`; `\"allow_unknown\": true` permits unknown ones",
    )
    .flag(Flag::new(
        Takes::Object,
        "JSON|@FILE",
        "Fields of the vendor's request as a JSON object, such as '{\"temperature\": 0}'; @FILE reads it from a file",
    )),
    Field::new(
        "sample",
        "none",
        "only this number of documents, drawn at random from every kind and size. The same instructions draw the same documents for every model; the whole batch, later and into the same output, does not buy them again",
    )
    .flag(Flag::new(
        Takes::Number,
        "N",
        "Only N documents, drawn at random; the whole batch, into the same output, does not buy them again",
    )),
    Field::new(
        "truth",
        "none",
        "expected answers, as a JSONL object of `{\"id\",\"expected\"}` lines: the report counts how many [agree](agreement.md), by field",
    )
    .flag(Flag::new(
        Takes::Source,
        "FILE",
        "Expected answers, as JSONL of {\"id\",\"expected\"}: the report counts how many agree, by field",
    )),
    Field::new(
        "webhook",
        "none",
        "[a configured webhook](webhooks.md) to call when the batch has ended",
    )
    .flag(Flag::new(
        Takes::Word(|_| Ok(())),
        "NAME",
        "A configured webhook to call when the batch has ended",
    )),
    Field::new(
        "replace",
        "false",
        "if the output holds answers to another question, ask again and replace what differs",
    )
    .flag(Flag::new(
        Takes::Nothing,
        "",
        "If the output holds answers to another question, ask again and replace what differs",
    )),
    Field::new(
        "reread",
        "false",
        "read documents again that an older reader read; ask again only if the text changed",
    )
    .flag(Flag::new(
        Takes::Nothing,
        "",
        "Read documents again that an older reader read; ask again only if the text changed",
    )),
];
