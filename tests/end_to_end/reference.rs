//! Pages that are generated from the code: `docs/configuration.md` from the configuration's structs
//! (fields, their comments, defaults), the fields of a batch's input in `docs/batch.md` from their
//! table, `docs/commands.md` from the command line, `docs/failures.md` from the failure types and the
//! advice for each, and `docs/metrics.md` from the sources of the metrics.
//!
//! `TIDEGATE_WRITE_DOCS=1 cargo test --workspace --locked --test end_to_end -- reference::` writes them.

use std::{collections::BTreeMap, fmt::Write as _, path::Path};

use clap::{Arg, Command, CommandFactory};
use serde_json::Value;
use syn::{Attribute, Expr, Fields, Item, ItemStruct, Lit, Meta, Type};
use tidegate::{
    cli::{Cli, failure_advice},
    config::Config,
};
use tidegate_types::FailureType;
use tidegate_workflows::input::FIELDS;

const FILES: [&str; 8] =
    ["sections", "documents", "group", "host", "model", "provider", "serve", "webhook"];

const HEAD: &str = "# Configuration

<!-- Written by tests/end_to_end/reference.rs from src/config/; change the comments there. -->

`tidegate.toml` in the current folder, or the file that `--config` or `TIDEGATE_CONFIG` names. Every key can
be set from the environment as `TIDEGATE_<SECTION>__<KEY>` (`TIDEGATE_GATE__JITTER=5s`); names that a
variable cannot spell, such as `anthropic:claude-sonnet-5`, are written with underscores and must stand in
the file. Lengths of time are `\"250ms\"`, `\"30s\"`, `\"5m\"`. Unknown keys are refused by name. `tidegate
config` shows what is in force, and where each key comes from.
";

/// Every section of the configuration by its struct's name.
fn structs() -> BTreeMap<String, ItemStruct> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/config");
    let texts = FILES.map(|file| std::fs::read_to_string(root.join(format!("{file}.rs"))).unwrap());
    let items = texts.iter().flat_map(|text| syn::parse_file(text).unwrap().items);
    let structs = items.filter_map(|item| match item {
        Item::Struct(item) if is_section(&item) => Some((item.ident.to_string(), item)),
        _ => None,
    });
    structs.collect()
}

/// Whether a struct is a table with keys, and not a text such as `10/s`.
fn is_section(item: &ItemStruct) -> bool {
    let derives = |it: &Attribute| {
        let Meta::List(list) = &it.meta else { return false };
        it.path().is_ident("derive") && list.tokens.to_string().contains("Deserialize")
    };
    matches!(item.fields, Fields::Named(_)) && item.attrs.iter().any(derives)
}

/// A comment on one line, without rustdoc's links.
fn comment(attributes: &[Attribute]) -> String {
    let mut text = String::new();
    for attribute in attributes.iter().filter(|it| it.path().is_ident("doc")) {
        if let Meta::NameValue(pair) = &attribute.meta
            && let Expr::Lit(literal) = &pair.value
            && let Lit::Str(line) = &literal.lit
        {
            let _ = write!(text, "{} ", line.value().trim());
        }
    }
    text.trim().replace("[`", "`").replace("`]", "`").replace('|', "\\|")
}

fn is_skipped(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|it| {
        let Meta::List(list) = &it.meta else { return false };
        it.path().is_ident("serde") && list.tokens.to_string() == "skip"
    })
}

/// The innermost name of a type, and whether it is a map.
fn kind(of: &Type) -> (String, bool) {
    let Type::Path(path) = of else { return (String::new(), false) };
    let last = path.path.segments.last().unwrap();
    let name = last.ident.to_string();
    let syn::PathArguments::AngleBracketed(inner) = &last.arguments else { return (name, false) };
    let syn::GenericArgument::Type(inner) = inner.args.last().unwrap() else {
        return (name, false);
    };
    let (inner, map) = kind(inner);
    (inner, map || name == "BTreeMap")
}

/// One section, followed by its subsections.
fn section(
    structs: &BTreeMap<String, ItemStruct>,
    path: &str,
    about: &str,
    name: &str,
    defaults: &Value,
    page: &mut String,
) {
    let of = &structs[name];
    let Fields::Named(fields) = &of.fields else { panic!("{name} has no named fields") };
    let _ =
        write!(page, "\n## `[{path}]`\n\n{about}\n\n| key | default | meaning |\n|---|---|---|\n");
    let mut inner = Vec::new();
    for field in fields.named.iter().filter(|field| !is_skipped(&field.attrs)) {
        let key = field.ident.as_ref().unwrap().to_string().replace('_', "-");
        let (of, map) = kind(&field.ty);
        let about = comment(&field.attrs);
        if structs.contains_key(&of) {
            let path =
                if map { format!("{path}.{key}.\"<name>\"") } else { format!("{path}.{key}") };
            inner.push((path, about, of));
            continue;
        }
        let default = match &defaults[&key] {
            Value::Null => String::new(),
            Value::String(text) if text.is_empty() => String::new(),
            value => format!("`{value}`"),
        };
        let _ = writeln!(page, "| `{key}` | {default} | {about} |");
    }
    for (path, about, of) in inner {
        section(structs, &path, &about, &of, &Value::Null, page);
    }
}

fn page() -> String {
    let structs = structs();
    let Fields::Named(sections) = &structs["Config"].fields else { panic!("no sections") };
    let empty = "[providers.x]\n[models.x]\n[lanes.x]\n[tenants.x]\n[routes.x]\n[quotas.x]\n";
    let defaults = serde_json::to_value(toml::from_str::<Config>(empty).unwrap()).unwrap();
    let mut page = HEAD.to_owned();
    for field in sections.named.iter().filter(|field| !is_skipped(&field.attrs)) {
        let key = field.ident.as_ref().unwrap().to_string();
        let (of, map) = kind(&field.ty);
        let (path, defaults) = if map {
            (format!("{key}.\"<name>\""), &defaults[&key]["x"])
        } else {
            (key.clone(), &defaults[&key])
        };
        section(&structs, &path, &comment(&field.attrs), &of, defaults, &mut page);
    }
    page
}

#[test]
fn the_configuration_is_described_as_it_is() {
    let page = page();
    assert!(page.contains("| `max-concurrent-documents` | `200` |"), "{page}");
    assert!(page.contains("## `[storage.hosts.\"<name>\"]`"), "{page}");
    let undescribed: Vec<_> = page.lines().filter(|line| line.ends_with("|  |")).collect();
    assert!(undescribed.is_empty(), "no comment: {undescribed:?}");
    compare("configuration.md", &page);
}

/// Writes a page, or checks that it is what the code says.
fn compare(name: &str, page: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(name);
    if std::env::var_os("TIDEGATE_WRITE_DOCS").is_some() {
        std::fs::write(&file, page).unwrap();
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        written == page,
        "docs/{name} is not what the code says; write it anew: TIDEGATE_WRITE_DOCS=1 cargo test --workspace --locked --test end_to_end -- reference::"
    );
}

/// The text before the fields of the input.
const BEFORE: &str = "<!-- Written by tests/end_to_end/reference.rs from workflows/src/input/table.rs; change the rows there. -->

| input | default | meaning |
|---|---|---|
";

#[test]
fn the_input_is_described_as_it_is() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/batch.md");
    let page = std::fs::read_to_string(&file).unwrap();
    let (head, rest) = page.split_once(BEFORE).unwrap();
    let (_, tail) = rest.split_once("\n\n").unwrap();
    let rows = FIELDS.iter().filter(|field| !field.meaning.is_empty());
    let rows = rows.map(|field| {
        let row = format!("| `{}` | {} | {} |", field.name, field.default, field.meaning);
        row.replace("  ", " ")
    });
    let rows: Vec<String> = rows.collect();
    let written = format!("{head}{BEFORE}{}\n\n{tail}", rows.join("\n"));
    compare("batch.md", &written);
}

/// A command's usage: its arguments, and its options without those that are fields of a batch's input.
fn usage(command: &Command, name: &str) -> String {
    let is_batch = command.get_arguments().any(|arg| arg.get_id() == "source");
    let given = |arg: &&Arg| {
        let id = arg.get_id().as_str();
        let is_elsewhere = matches!(id, "help" | "version" | "json") || arg.is_global_set();
        let is_field = is_batch && FIELDS.iter().any(|field| field.name == id);
        !is_elsewhere && !is_field
    };
    let mut usage = format!("tidegate {name}");
    let (places, options): (Vec<&Arg>, Vec<&Arg>) =
        command.get_arguments().filter(given).partition(|arg| arg.is_positional());
    for arg in places {
        let _ = write!(usage, " {}", in_brackets(arg, &value(arg)));
    }
    if is_batch {
        usage.push_str(" SOURCE FIELDS");
    }
    for arg in options {
        let long = arg.get_long().unwrap();
        let takes = arg.get_action().takes_values();
        let flag = if takes { format!("--{long} {}", value(arg)) } else { format!("--{long}") };
        let _ = write!(usage, " {}", in_brackets(arg, &flag));
    }
    usage
}

fn in_brackets(arg: &Arg, text: &str) -> String {
    if arg.is_required_set() { text.to_owned() } else { format!("[{text}]") }
}

fn value(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default();
    names.first().map_or_else(|| arg.get_id().as_str().to_uppercase(), |name| name.to_uppercase())
}

/// The row of a command, followed by those of its subcommands.
fn command_rows(command: &Command, name: &str, page: &mut String) {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let has_own = command.get_arguments().any(|arg| !arg.is_global_set() && arg.get_id() != "help");
    if has_own || !command.has_subcommands() {
        let usage = usage(command, name).replace('|', "\\|");
        let _ = writeln!(page, "| `{usage}` | {about} |");
    }
    for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
        command_rows(inner, &format!("{name} {}", inner.get_name()), page);
    }
}

const COMMANDS: &str = "# Commands

<!-- Written by tests/end_to_end/reference.rs from src/cli/; change the comments there. -->

`tidegate COMMAND --help` explains each option. `--config FILE` and `--log-format json` go with every command, `--json` with every
command that prints data. FIELDS are [a batch's fields](batch.md) as options, such as `--max-output-tokens`.

| command | does |
|---|---|
";

#[test]
fn the_commands_are_described_as_they_are() {
    let mut page = COMMANDS.to_owned();
    let mut root = Cli::command();
    root.build();
    for command in root.get_subcommands().filter(|command| command.get_name() != "help") {
        command_rows(command, command.get_name(), &mut page);
    }
    assert!(page.contains("| `tidegate pause MODEL [--for TIME]"), "{page}");
    compare("commands.md", &page);
}

const FAILURES: &str = "# Failure types

<!-- Written by tests/end_to_end/reference.rs from types/src/failure.rs and src/cli/advice.rs; change them there. -->

`error_type` in `failures.jsonl`, and the type of a failure in Temporal. [What a provider's refusal means](providers/errors.md) says how
each is retried. `tidegate why` says the next step with the names of your models and keys.

| type | meaning | next |
|---|---|---|
";

/// Types that are no document's: a workflow's, and the delivery of a webhook.
const OTHER_FAILURES: &str = "\
| `DocumentsMissing` | A document is missing when the batch ends; the message names it. | run the batch again |
| `Undelivered` | The webhook's receiver did not accept the message. | see [webhooks](webhooks.md) |
";

#[test]
fn the_failures_are_described_as_they_are() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("types/src/failure.rs");
    let items = syn::parse_file(&std::fs::read_to_string(source).unwrap()).unwrap().items;
    let types = items.into_iter().find_map(|item| match item {
        Item::Enum(item) if item.ident == "FailureType" => Some(item),
        _ => None,
    });
    let mut page = FAILURES.to_owned();
    for variant in types.unwrap().variants {
        let kind = FailureType::parse(&variant.ident.to_string()).unwrap();
        let (about, next) = (comment(&variant.attrs), failure_advice(kind));
        let _ = writeln!(page, "| `{kind}` | {about} | {next} |");
    }
    compare("failures.md", &(page + OTHER_FAILURES));
}

const METRICS: &str = "# Metrics

<!-- Written by tests/end_to_end/reference.rs from the sources of the metrics; change the texts there. -->

`worker.metrics-listen` serves them at `/metrics`, beside the Temporal SDK's own.

| metric | meaning |
|---|---|
";

const METRIC_SOURCES: [&str; 5] = [
    "quota/src/metrics.rs",
    "calls/src/metrics.rs",
    "activities/src/metrics.rs",
    "src/metrics.rs",
    "src/serve/access.rs",
];

/// Each metric of a source with its labels and its help text.
fn metrics(source: &str) -> Vec<(String, String)> {
    let words: Vec<&str> =
        source.split("#[cfg(test)]").next().unwrap().split_whitespace().collect();
    let text = words.join(" ").replace("( ", "(");
    let names = text.split("const ").skip(1).filter_map(|rest| {
        let (constant, rest) = rest.split_once(": &str = \"tidegate_")?;
        Some((constant, rest.split('"').next()?))
    });
    let metric = |(constant, name): (&str, &str)| {
        let named = format!("!({constant}, ");
        let help = text.split("describe_").find_map(|rest| {
            let (kind, rest) = rest.split_once(&named)?;
            if kind.contains(' ') { None } else { rest.split('"').nth(1) }
        });
        let help = help.unwrap_or_else(|| panic!("tidegate_{name} has no help text"));
        let mut labels = Vec::new();
        for call in text.split(&named).skip(1).filter_map(|rest| rest.split(';').next()) {
            let mut before: Vec<&str> = call.split("\" =>").collect();
            before.pop();
            for label in before.iter().filter_map(|text| text.rsplit('"').next()) {
                if !labels.contains(&label) {
                    labels.push(label);
                }
            }
        }
        let labels = labels.join(",");
        let labels = if labels.is_empty() { labels } else { format!("{{{labels}}}") };
        (format!("tidegate_{name}{labels}"), help.to_owned())
    };
    names.map(metric).collect()
}

#[test]
fn the_metrics_are_described_as_they_are() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let texts = METRIC_SOURCES.map(|file| std::fs::read_to_string(root.join(file)).unwrap());
    let rows: BTreeMap<_, _> = texts.iter().flat_map(|text| metrics(text)).collect();
    let rows = rows.iter().map(|(metric, about)| format!("| `{metric}` | {about} |\n"));
    let page = METRICS.to_owned() + &rows.collect::<String>();
    assert!(page.contains("| `tidegate_denials_total{model,dimension}` |"), "{page}");
    compare("metrics.md", &page);
}
