//! Pages that are generated from the code: `docs/configuration.md` from the configuration's structs
//! (fields, their comments, defaults), and the fields of a batch's input in `docs/batch.md` from their
//! table.
//!
//! `TIDEGATE_WRITE_DOCS=1 cargo test --workspace --locked --test end_to_end -- reference::` writes them.

use std::{collections::BTreeMap, fmt::Write as _, path::Path};

use serde_json::Value;
use syn::{Attribute, Expr, Fields, Item, ItemStruct, Lit, Meta, Type};
use tidegate::config::Config;
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
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/configuration.md");
    let page = page();
    assert!(page.contains("| `max-concurrent-documents` | `200` |"), "{page}");
    assert!(page.contains("## `[storage.hosts.\"<name>\"]`"), "{page}");
    let undescribed: Vec<_> = page.lines().filter(|line| line.ends_with("|  |")).collect();
    assert!(undescribed.is_empty(), "no comment: {undescribed:?}");
    if std::env::var_os("TIDEGATE_WRITE_DOCS").is_some() {
        std::fs::write(&file, &page).unwrap();
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        written == page,
        "docs/configuration.md is not what src/config/ says; write it anew: TIDEGATE_WRITE_DOCS=1 cargo test --workspace --locked --test end_to_end -- reference::"
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
    if std::env::var_os("TIDEGATE_WRITE_DOCS").is_some() {
        std::fs::write(&file, &written).unwrap();
    }
    let page = std::fs::read_to_string(&file).unwrap();
    assert!(
        page == written,
        "docs/batch.md is not what workflows/src/input/table.rs says; write it anew: TIDEGATE_WRITE_DOCS=1 cargo test --workspace --locked --test end_to_end -- reference::"
    );
}
