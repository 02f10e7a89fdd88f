//! The part of JSON Schema that each vendor follows.

/// The field that holds an answer that is no object.
pub(crate) const WRAP: &str = "answer";

/// The way in which a model handles a schema.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Keeps {
    /// It follows a schema of this form.
    Schema(&'static Rules),
    /// It follows none, but calls a tool with arguments of this form.
    Tool(&'static Rules),
    /// It writes JSON, without a schema.
    Json,
    /// It gets the schema in words.
    Nothing,
}

/// The part of JSON Schema that a vendor follows. Keywords that all vendors know (types,
/// properties, items, enum, anyOf, `$ref` into `$defs`, descriptions) are in none of the lists.
#[derive(Debug)]
pub(crate) struct Rules {
    /// Every object must state that it has no other properties.
    pub(crate) closed: bool,
    /// Every property must be required.
    pub(crate) all_required: bool,
    /// The top level must be an object.
    pub(crate) object_root: bool,
    /// Whether a schema may refer to itself.
    pub(crate) recursion: bool,
    /// Further keywords.
    pub(crate) keywords: &'static [&'static str],
    /// Supported formats of texts; others go into the description.
    pub(crate) formats: &'static [&'static str],
    /// Largest `minItems` that lists may state.
    pub(crate) min_items_at_most: u64,
    /// Greatest depth of objects within objects.
    pub(crate) depth: usize,
    /// Maximum number of properties in total.
    pub(crate) properties: usize,
    /// Maximum number of properties in total that are not required.
    pub(crate) optional: usize,
}

const FORMATS: &[&str] =
    &["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

/// developers.openai.com/api/docs/guides/structured-outputs#supported-schemas: 5,000 properties, 10
/// levels.
pub(crate) static OPENAI: Rules = Rules {
    closed: true,
    all_required: true,
    object_root: true,
    recursion: true,
    keywords: &[
        "pattern",
        "multipleOf",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "minItems",
        "maxItems",
    ],
    formats: FORMATS,
    min_items_at_most: u64::MAX,
    depth: 10,
    properties: 5_000,
    optional: usize::MAX,
};

/// platform.claude.com/docs/en/build-with-claude/structured-outputs#json-schema-limitations, and the
/// vendor's SDK 2.11.0 (`lib/_parse/_transform.py`): no recursion, no bounds, at most 24 properties
/// that are not required.
pub(crate) static ANTHROPIC: Rules = Rules {
    closed: true,
    all_required: false,
    object_root: false,
    recursion: false,
    keywords: &["minItems"],
    formats: &[
        "date-time",
        "time",
        "date",
        "duration",
        "email",
        "hostname",
        "uri",
        "ipv4",
        "ipv6",
        "uuid",
    ],
    min_items_at_most: 1,
    depth: usize::MAX,
    properties: usize::MAX,
    optional: 24,
};

/// ai.google.dev/gemini-api/docs/structured-output: `responseJsonSchema` takes bounds, lengths of
/// lists and further properties, and ignores unknown keywords. No depth is stated.
pub(crate) static GEMINI: Rules = Rules {
    closed: false,
    all_required: false,
    object_root: false,
    recursion: true,
    keywords: &["minimum", "maximum", "minItems", "maxItems", "prefixItems"],
    formats: &["date-time", "date", "time"],
    min_items_at_most: u64::MAX,
    depth: usize::MAX,
    properties: usize::MAX,
    optional: usize::MAX,
};

/// Servers whose sampler follows a grammar made from the schema: they take ordinary schemas,
/// including maps (docs.vllm.ai/en/latest/features/structured_outputs.html,
/// docs.ollama.com/capabilities/structured-outputs).
pub(crate) static LENIENT: Rules = ORDINARY;

/// A tool's arguments are an object; otherwise their schema is an ordinary one, which the model
/// reads and no sampler follows (platform.claude.com/docs/en/agents-and-tools/tool-use,
/// docs.aws.amazon.com/nova/latest/userguide/tool-use-definition.html).
pub(crate) static TOOL: Rules = Rules { object_root: true, ..ORDINARY };

const ORDINARY: Rules = Rules {
    closed: false,
    all_required: false,
    object_root: false,
    recursion: true,
    keywords: &[
        "pattern",
        "minLength",
        "maxLength",
        "minimum",
        "maximum",
        "minItems",
        "maxItems",
        "prefixItems",
    ],
    formats: FORMATS,
    min_items_at_most: u64::MAX,
    depth: usize::MAX,
    properties: usize::MAX,
    optional: usize::MAX,
};
