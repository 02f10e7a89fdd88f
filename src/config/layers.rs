//! Reads the layers: defaults, then the file, then the environment.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
};

use figment::{
    Error, Figment, Metadata, Profile, Provider,
    providers::{Format, Serialized, Toml},
    value::{Dict, Map, Value},
};

use tidegate_providers::Vendor;

use super::{
    check,
    fault::{ConfigError, Fault, describe, dotted_path},
    sections::{Config, Lane, built_in_lanes},
    sources::{DEFAULT, PREFIX, Sources},
};

/// Separates the names of a key's path in a variable.
const SEPARATOR: &str = "__";

/// Temporal's own variables for a worker's version. Our keys take precedence.
const TEMPORAL_VARIABLES: [(&str, &str); 2] =
    [("TEMPORAL_DEPLOYMENT_NAME", "deployment"), ("TEMPORAL_WORKER_BUILD_ID", "build-id")];

/// The file that is read if none is named.
const DEFAULT_FILE: &str = "tidegate.toml";

impl Config {
    /// Reads the configuration: defaults, then the file, then the environment.
    ///
    /// The file is `path`, else `TIDEGATE_CONFIG`, else `./tidegate.toml` if there is one.
    ///
    /// # Errors
    /// [`ConfigError`] names every fault that was found, its place and the remedy.
    pub fn load(path: Option<&Path>) -> Result<Self, ConfigError> {
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        Self::from_layers(path, variables)
    }

    /// Like [`Self::load`], with these variables as the environment.
    ///
    /// # Errors
    /// See [`Self::load`].
    pub fn from_layers(
        path: Option<&Path>,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        let (mut config, mut faults) = read(path, variables)?;
        config.yield_shares();
        config.add_presets();
        config.expand_pools();
        // A refused key is missing here: its absence is no second fault.
        let further = check::find_faults(&config)
            .into_iter()
            .filter(|fault| !faults.iter().any(|known| known.key.starts_with(&fault.key)));
        faults.extend(further.collect::<Vec<_>>());
        if faults.is_empty() { Ok(config) } else { Err(ConfigError { faults }) }
    }

    /// Adds sections for known vendors that a model names without a section.
    fn add_presets(&mut self) {
        for name in self.used_providers() {
            if name.parse::<Vendor>().is_ok() {
                self.providers.entry(name).or_default();
            }
        }
    }

    /// Configured lanes reduce the built-in shares: built-in lanes that are not configured share the
    /// rest, in the proportion of their built-in shares.
    fn yield_shares(&mut self) {
        let built_in = built_in_lanes();
        let is_default = |sources: &Sources, name: &str| {
            built_in.contains_key(name) && sources.near(&["lanes", name]) == DEFAULT
        };
        let (unnamed, named): (Vec<_>, Vec<_>) =
            self.lanes.iter().partition(|(name, _)| is_default(&self.sources, name));
        if named.is_empty() {
            return;
        }
        let sum =
            |lanes: &[(&String, &Lane)]| lanes.iter().map(|(_, lane)| lane.share).sum::<f64>();
        let part = (1.0 - sum(&named)).max(0.0) / sum(&unnamed).max(f64::MIN_POSITIVE);
        let others: Vec<String> = named.iter().map(|(name, _)| format!("lanes.{name}")).collect();
        let unnamed: Vec<String> = unnamed.iter().map(|(name, _)| (*name).clone()).collect();
        for name in unnamed {
            let Some(lane) = self.lanes.get_mut(&name) else { continue };
            // Rounded down, so that the sum stays within the total.
            lane.share = (lane.share * part * 1e4 + 1e-6).floor() / 1e4;
            let why = format!("its part of what {} leaves", others.join(" and "));
            self.sources.explain(&["lanes", &name, "share"], why);
        }
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

/// Reads all layers. Values of a wrong type are left out and reported as faults.
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
    let mut layers = Figment::from(Serialized::defaults(Config::default().set_keys()));
    for (name, key) in TEMPORAL_VARIABLES {
        let value = variables.iter().find(|(known, value)| known == name && !value.is_empty());
        if let Some((name, value)) = value.cloned() {
            let path = vec!["worker".to_owned(), key.to_owned()];
            layers = layers.merge(Variable { name, path, value: Value::from(value) });
        }
    }
    if let Some(file) = &file {
        let refused = |what| ConfigError::new(file.display().to_string(), String::new(), what);
        let text = std::fs::read_to_string(file).map_err(|error| {
            let remedy = match error.kind() {
                ErrorKind::InvalidData => "save it as UTF-8",
                _ => "check the path, and who may read it",
            };
            refused(format!("the file cannot be read ({error}); {remedy}"))
        })?;
        if let Err(error) = toml::from_str::<toml::Table>(&text) {
            // The line itself is not shown: it may hold a password.
            let before = text.get(..error.span().map_or(0, |at| at.start)).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            let what = format!("the file is not TOML: line {line}: {}", error.message().trim_end());
            return Err(refused(what));
        }
        layers = layers.merge(Toml::file_exact(file));
    }
    let mut unknown = Vec::new();
    for (name, value) in variables {
        let Some(path) = key_path(&name) else { continue };
        let names = keys(&layers).unwrap_or_default();
        let path = match_spelling(path, &names);
        if names_unknown_model(&path, &names) {
            let what = "is not in the file, and a variable cannot spell a model's name; write [models.\"provider:model\"] into the file first";
            let (key, what) = (dotted_path(&path[..2]), what.to_owned());
            unknown.push(Fault { source: name, key, what });
            continue;
        }
        let value = parse_value(&path, &value);
        layers = layers.merge(Variable { name, path, value });
    }
    let mut dict =
        keys(&layers).map_err(|what| ConfigError::new("configuration", String::new(), what))?;
    let sources = Sources::new(file, &layers, &dict);
    let (config, mut faults) = parse(&mut dict, &sources);
    faults.extend(unknown);
    match config {
        Some(config) => Ok((Config { sources, ..config }, faults)),
        None => Err(ConfigError { faults }),
    }
}

/// All keys of the layers, with their values.
fn keys(layers: &Figment) -> Result<Dict, String> {
    let mut data = layers.data().map_err(|error| describe(&error))?;
    Ok(data.remove(&Profile::Default).unwrap_or_default())
}

/// Removes each refused value and parses again, so that all faults are reported at once.
fn parse(dict: &mut Dict, sources: &Sources) -> (Option<Config>, Vec<Fault>) {
    let mut faults = Vec::new();
    loop {
        let error = match Value::from(dict.clone()).deserialize::<Config>() {
            Ok(config) => return (Some(config), faults),
            Err(error) => error,
        };
        // A section may now lack the removed key: that is no second fault.
        let key = dotted_path(&error.path);
        if !faults.iter().any(|known: &Fault| known.key.starts_with(&format!("{key}."))) {
            let (source, what) = (sources.source_of_fault(&error.path), describe(&error));
            faults.push(Fault { source, key, what });
        }
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

/// `TIDEGATE_GATE__BASE_BACKOFF` is `gate.base-backoff`; a name without `__` is no key.
fn key_path(name: &str) -> Option<Vec<String>> {
    let rest = name.strip_prefix(PREFIX)?;
    rest.contains(SEPARATOR)
        .then(|| rest.split(SEPARATOR).map(|part| part.to_lowercase().replace('_', "-")).collect())
}

/// Names that a variable cannot spell, such as `anthropic:claude-sonnet-5`, are matched by letters and
/// digits with the names in the file.
fn match_spelling(path: Vec<String>, names: &Dict) -> Vec<String> {
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

/// Whether the path of a variable leads into a model that no file names.
fn names_unknown_model(path: &[String], names: &Dict) -> bool {
    let [section, name, _, ..] = path else { return false };
    let models = names.get(section).and_then(Value::as_dict);
    section == "models"
        && !name.contains(':')
        && !models.is_some_and(|models| models.contains_key(name))
}

/// Parses the text as TOML if it is a number, a boolean or a list; otherwise it stays a text.
fn parse_value(path: &[String], text: &str) -> Value {
    let is_text = matches!(path.first().map(String::as_str), Some("temporal" | "redis"));
    match toml::from_str::<Dict>(&format!("value = {text}")) {
        Ok(mut dict) if !is_text && !matches!(dict.get("value"), Some(Value::String(..))) => {
            dict.remove("value").unwrap_or_else(|| text.into())
        }
        _ => text.into(),
    }
}
