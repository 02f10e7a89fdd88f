//! The configuration in force, with the source of each key; secrets masked.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;

use super::{
    fault::dotted_path,
    mask,
    provider::{Key, is_set},
    sections::{Config, Temporal},
    sources::DEFAULT,
    temporal::profile,
};

/// One key in force.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Shown {
    /// The section, as a dotted path.
    pub section: String,
    /// The key in it.
    pub key: String,
    /// Its value; passwords masked.
    pub value: Value,
    /// `default`, the file, or the environment variable.
    pub source: String,
}

/// Every key in force, in the order of the sections.
pub fn keys(config: &Config) -> Vec<Shown> {
    let mut shown = config.clone();
    shown.collapse_pools();
    shown.redis.url = mask::url(&shown.redis.url);
    shown.temporal.address = shown.temporal.address.as_deref().map(mask::url);
    for webhook in shown.webhooks.values_mut() {
        webhook.url = mask::url(&webhook.url);
    }
    for (name, provider) in &mut shown.providers {
        *provider = provider.with_defaults(name);
        provider.base_url = provider.base_url.as_deref().map(mask::url);
        // Gateways take keys as arguments.
        for argument in provider.token_command.iter_mut().skip(1) {
            mask::MASK.clone_into(argument);
        }
        provider.headers.values_mut().for_each(|value| mask::MASK.clone_into(value));
    }
    let mut keys = Vec::new();
    walk(config, &mut Vec::new(), &shown.set_keys(), &mut keys);
    let at = keys.iter().position(|key| key.section == "temporal").unwrap_or(keys.len());
    keys.splice(at..at, temporal_keys(config));
    keys
}

/// Temporal's own variables and `temporal.toml`, for keys that the configuration leaves unset.
fn temporal_keys(config: &Config) -> Vec<Shown> {
    let Ok(profile) = profile() else { return Vec::new() };
    let Temporal { address, namespace, .. } = &config.temporal;
    let keys = [
        ("address", address, profile.address, "TEMPORAL_ADDRESS", "localhost:7233"),
        ("namespace", namespace, profile.namespace, "TEMPORAL_NAMESPACE", "default"),
    ];
    let unset = keys.into_iter().filter(|(_, ours, ..)| ours.is_none());
    let shown = unset.map(|(key, _, theirs, variable, usual)| {
        let source = match &theirs {
            Some(_) if is_set(variable) => variable,
            Some(_) => "temporal.toml",
            None => DEFAULT,
        };
        let value = theirs.unwrap_or_else(|| usual.to_owned()).into();
        Shown {
            section: "temporal".to_owned(),
            key: key.to_owned(),
            value,
            source: source.to_owned(),
        }
    });
    shown.collect()
}

fn walk(config: &Config, path: &mut Vec<String>, value: &Value, keys: &mut Vec<Shown>) {
    if let Value::Object(section) = value {
        // Plain keys first: in TOML, keys after a section's header belong to that section.
        let (plain, sections): (Vec<_>, Vec<_>) =
            section.iter().partition(|(_, value)| !value.is_object());
        for (key, value) in plain.into_iter().chain(sections) {
            path.push(key.clone());
            walk(config, path, value, keys);
            path.pop();
        }
        if let ([table, name], Some(provider)) =
            (path.as_slice(), path.get(1).and_then(|name| config.providers.get(name)))
            && table == "providers"
        {
            let key = provider.key(name);
            let source = match &key {
                Key::Env(name) | Key::VendorEnv(name) => format!("environment {name}"),
                Key::Command(_) => "token-command".to_owned(),
                Key::Google(found) => format!("application-default credentials, {found}"),
                Key::File(path) | Key::EnvFile(path, _) => path.display().to_string(),
                Key::None => DEFAULT.to_owned(),
            };
            keys.push(Shown {
                section: dotted_path(path),
                key: "api-key".to_owned(),
                value: key.to_string().into(),
                source,
            });
        }
    } else if let [section @ .., key] = path.as_slice() {
        let source = config.sources.source(path.as_slice()).to_owned();
        keys.push(Shown {
            section: dotted_path(section),
            key: key.clone(),
            value: value.clone(),
            source,
        });
    }
}

/// As TOML, each key followed by its source.
pub fn toml(config: &Config) -> String {
    let mut text = String::new();
    if let Some(file) = config.file() {
        let _ = writeln!(text, "# {}", file.display());
    }
    let mut section = String::new();
    for shown in keys(config) {
        if shown.section != section {
            let gap = if text.is_empty() { "" } else { "\n" };
            let _ = writeln!(text, "{gap}[{}]", shown.section);
            section.clone_from(&shown.section);
        }
        // Not a key of the file, so it is shown as a comment.
        if shown.key == "api-key" {
            let _ = writeln!(text, "# api-key: {}", shown.value.as_str().unwrap_or_default());
        } else {
            let line = format!("{} = {}", shown.key, inline(&shown.value));
            let _ = writeln!(text, "{line:<48} # {}", shown.source);
        }
    }
    text
}

/// A value in one line of TOML: like JSON, except for tables.
fn inline(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", "))
        }
        Value::Object(table) => {
            let keys = table
                .iter()
                .map(|(key, value)| format!("{} = {}", dotted_path(&[key]), inline(value)));
            format!("{{ {} }}", keys.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}
