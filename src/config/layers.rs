//! Defaults, then the file, then the environment.

use std::{
    collections::BTreeMap,
    env,
    path::{Path, PathBuf},
};

use figment::{
    Error, Figment, Metadata, Profile, Provider,
    providers::{Format, Serialized, Toml},
    value::{Dict, Map, Value},
};

use super::{
    Config,
    fault::{ConfigError, Fault, describe, dotted},
};

/// Variables of this form are configuration: `TIDEGATE_<SECTION>__<KEY>`.
const PREFIX: &str = "TIDEGATE_";
const SEPARATOR: &str = "__";

/// The file that is read when none is named.
const DEFAULT_FILE: &str = "tidegate.toml";

/// The name of the lowest layer.
pub const DEFAULT: &str = "default";

/// Where each key comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sources {
    /// The file that was read.
    pub file: Option<PathBuf>,
    keys: BTreeMap<Vec<String>, String>,
}

impl Sources {
    /// The file or variable that set a key, or [`DEFAULT`].
    #[must_use]
    pub fn of<T: AsRef<str>>(&self, path: &[T]) -> &str {
        let path: Vec<String> = path.iter().map(|part| part.as_ref().to_owned()).collect();
        self.keys.get(&path).map_or(DEFAULT, String::as_str)
    }

    /// The source of a key, or of anything in the section under it.
    #[must_use]
    pub fn near<T: AsRef<str>>(&self, path: &[T]) -> &str {
        let parts: Vec<&str> = path.iter().map(AsRef::as_ref).collect();
        let below = |key: &Vec<String>| {
            key.len() >= parts.len() && key.iter().zip(&parts).all(|(a, b)| a == b)
        };
        let mut sources =
            self.keys.iter().filter(|(key, _)| below(key)).map(|(_, source)| source.as_str());
        sources.find(|source| *source != DEFAULT).unwrap_or(DEFAULT)
    }
}

/// One environment variable as a layer of its own, so that each key knows its variable.
struct Variable {
    name: String,
    path: Vec<String>,
    value: Value,
}

impl Provider for Variable {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.name.clone())
    }

    fn data(&self) -> Result<Map<Profile, Dict>, Error> {
        let nest = |value: Value, key: &String| Value::from(Dict::from([(key.clone(), value)]));
        match self.path.iter().rev().fold(self.value.clone(), nest) {
            Value::Dict(_, dict) => Ok(Profile::Default.collect(dict)),
            _ => Ok(Map::new()),
        }
    }
}

/// Reads all layers. What the types refuse is left out of the configuration, and named.
pub(super) fn read(
    path: Option<&Path>,
    variables: impl IntoIterator<Item = (String, String)>,
) -> Result<(Config, Vec<Fault>), ConfigError> {
    let mut variables: Vec<(String, String)> = variables.into_iter().collect();
    variables.sort();
    let named = variables
        .iter()
        .find(|(name, value)| name == "TIDEGATE_CONFIG" && !value.is_empty())
        .map(|(_, value)| PathBuf::from(value));
    let file = path
        .map(Path::to_path_buf)
        .or(named)
        .or_else(|| Some(PathBuf::from(DEFAULT_FILE)).filter(|file| file.exists()));
    let mut layers = Figment::from(Serialized::defaults(Config::default()));
    if let Some(file) = &file {
        let text = std::fs::read_to_string(file).map_err(|error| {
            whole(file, &format!("the file cannot be read ({error}); check the path"))
        })?;
        if let Err(error) = toml::from_str::<toml::Table>(&text) {
            return Err(whole(
                file,
                &format!("the file is not TOML: {}", error.to_string().trim_end()),
            ));
        }
        layers = layers.merge(Toml::file_exact(file));
    }
    for (name, value) in variables {
        let Some(path) = key_path(&name) else { continue };
        let names = layers
            .data()
            .ok()
            .and_then(|data| data.get(&Profile::Default).cloned())
            .unwrap_or_default();
        let path = spelled(path, &names);
        let value = typed(&path, &value);
        layers = layers.merge(Variable { name, path, value });
    }
    let data = layers.data().map_err(|error| ConfigError {
        faults: vec![Fault {
            source: "configuration".to_owned(),
            key: String::new(),
            what: describe(&error),
        }],
    })?;
    let mut dict = data.get(&Profile::Default).cloned().unwrap_or_default();
    let mut sources = Sources { file, keys: BTreeMap::new() };
    sources.note(&layers, &mut Vec::new(), &dict);
    let (config, faults) = parse(&mut dict, &sources);
    match config {
        Some(config) => Ok((Config { sources, ..config }, faults)),
        None => Err(ConfigError { faults }),
    }
}

/// Takes out what is refused and tries again, so that every fault is named at once.
fn parse(dict: &mut Dict, sources: &Sources) -> (Option<Config>, Vec<Fault>) {
    let mut faults = Vec::new();
    loop {
        let error = match Value::from(dict.clone()).deserialize::<Config>() {
            Ok(config) => return (Some(config), faults),
            Err(error) => error,
        };
        let source = match sources.near(&error.path) {
            DEFAULT => sources
                .file
                .as_ref()
                .map_or_else(|| "environment".to_owned(), |file| file.display().to_string()),
            source => source.to_owned(),
        };
        faults.push(Fault { source, key: dotted(&error.path), what: describe(&error) });
        if !remove(dict, &error.path) {
            return (None, faults);
        }
    }
}

fn remove(dict: &mut Dict, path: &[String]) -> bool {
    match path {
        [] => false,
        [key] => dict.remove(key).is_some(),
        [key, rest @ ..] => match dict.get_mut(key) {
            Some(Value::Dict(_, inner)) => remove(inner, rest),
            Some(_) => dict.remove(key).is_some(),
            None => false,
        },
    }
}

impl Sources {
    fn note(&mut self, layers: &Figment, path: &mut Vec<String>, dict: &Dict) {
        for (key, value) in dict {
            path.push(key.clone());
            match value {
                Value::Dict(_, inner) => self.note(layers, path, inner),
                value => {
                    let source = layers
                        .get_metadata(value.tag())
                        .map_or_else(|| DEFAULT.to_owned(), source_name);
                    self.keys.insert(path.clone(), source);
                }
            }
            path.pop();
        }
    }
}

fn source_name(metadata: &Metadata) -> String {
    match (&metadata.source, metadata.name.starts_with(PREFIX)) {
        (_, true) => metadata.name.to_string(),
        (Some(figment::Source::File(path)), _) => short(path),
        _ => DEFAULT.to_owned(),
    }
}

/// The path as one would write it from here.
fn short(path: &Path) -> String {
    let here = env::current_dir().unwrap_or_default();
    path.strip_prefix(&here).unwrap_or(path).display().to_string()
}

/// `TIDEGATE_GATE__BASE_BACKOFF` is `gate.base-backoff`; names without `__` are no keys.
fn key_path(name: &str) -> Option<Vec<String>> {
    let rest = name.strip_prefix(PREFIX)?;
    rest.contains(SEPARATOR)
        .then(|| rest.split(SEPARATOR).map(|part| part.to_lowercase().replace('_', "-")).collect())
}

/// Names that an environment variable cannot spell, such as `anthropic:claude-sonnet-5`, are found
/// by their letters and digits among those that the file has.
fn spelled(path: Vec<String>, names: &Dict) -> Vec<String> {
    let plain = |text: &str| {
        text.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase()
    };
    let mut known = Some(names);
    let mut spelled = Vec::with_capacity(path.len());
    for part in path {
        let name = known.and_then(|names| {
            names
                .keys()
                .find(|name| **name == part)
                .or_else(|| names.keys().find(|name| plain(name) == plain(&part)))
        });
        let name = name.cloned().unwrap_or(part);
        known = known.and_then(|names| names.get(&name)).and_then(Value::as_dict);
        spelled.push(name);
    }
    spelled
}

/// The text as TOML would have it where that is a number, a truth or a list; else as it stands.
fn typed(path: &[String], text: &str) -> Value {
    let is_text = matches!(path.first().map(String::as_str), Some("temporal" | "redis"));
    match toml::from_str::<Dict>(&format!("value = {text}")) {
        Ok(mut dict) if !is_text && !matches!(dict.get("value"), Some(Value::String(..))) => {
            dict.remove("value").unwrap_or_else(|| text.into())
        }
        _ => text.into(),
    }
}

fn whole(file: &Path, what: &str) -> ConfigError {
    ConfigError {
        faults: vec![Fault {
            source: file.display().to_string(),
            key: String::new(),
            what: what.to_owned(),
        }],
    }
}
