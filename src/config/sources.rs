//! The source of each key.

use std::{
    collections::BTreeMap,
    env,
    path::{Path, PathBuf},
};

use figment::{
    Figment, Metadata, Source,
    value::{Dict, Value},
};

/// Prefix of configuration variables: `TIDEGATE_<SECTION>__<KEY>`.
pub(super) const PREFIX: &str = "TIDEGATE_";

/// The name of the lowest layer.
pub const DEFAULT: &str = "default";

/// The file or variable that set each key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sources {
    /// The file that was read.
    pub file: Option<PathBuf>,
    keys: BTreeMap<Vec<String>, String>,
}

impl Sources {
    /// Collects the source of every key in the layers.
    pub(super) fn new(file: Option<PathBuf>, layers: &Figment, dict: &Dict) -> Self {
        let mut sources = Self { file, keys: BTreeMap::new() };
        sources.add(layers, &mut Vec::new(), dict);
        sources
    }

    fn add(&mut self, layers: &Figment, path: &mut Vec<String>, dict: &Dict) {
        for (key, value) in dict {
            path.push(key.clone());
            match value {
                Value::Dict(_, inner) => self.add(layers, path, inner),
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

    /// The file or variable that set a key, or [`DEFAULT`].
    pub fn source<T: AsRef<str>>(&self, path: &[T]) -> &str {
        let path: Vec<String> = path.iter().map(|part| part.as_ref().to_owned()).collect();
        self.keys.get(&path).map_or(DEFAULT, String::as_str)
    }

    /// Sets the source of a key that no layer set.
    pub(super) fn explain(&mut self, path: &[&str], why: String) {
        self.keys.insert(path.iter().map(|part| (*part).to_owned()).collect(), why);
    }

    /// The source of a key, or of anything in the section under it.
    pub fn near<T: AsRef<str>>(&self, path: &[T]) -> &str {
        let parts: Vec<&str> = path.iter().map(AsRef::as_ref).collect();
        let below = |key: &Vec<String>| {
            key.len() >= parts.len() && key.iter().zip(&parts).all(|(a, b)| a == b)
        };
        let mut sources =
            self.keys.iter().filter(|(key, _)| below(key)).map(|(_, source)| source.as_str());
        sources.find(|source| *source != DEFAULT).unwrap_or(DEFAULT)
    }

    /// The source to name for a fault at this key: its own, or the place where the key belongs.
    pub(super) fn source_of_fault<T: AsRef<str>>(&self, path: &[T]) -> String {
        match (self.near(path), &self.file) {
            (DEFAULT, Some(file)) => file.display().to_string(),
            (DEFAULT, None) => "environment".to_owned(),
            (source, _) => source.to_owned(),
        }
    }
}

/// Our variables, and those that other programs share, such as `TEMPORAL_WORKER_BUILD_ID`.
fn is_variable(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    name.starts_with(PREFIX) || (!name.is_empty() && name.chars().all(plain))
}

fn source_name(metadata: &Metadata) -> String {
    match (&metadata.source, is_variable(&metadata.name)) {
        (_, true) => metadata.name.to_string(),
        (Some(Source::File(path)), _) => short(path),
        _ => DEFAULT.to_owned(),
    }
}

/// The path relative to the current folder.
fn short(path: &Path) -> String {
    let here = env::current_dir().unwrap_or_default();
    path.strip_prefix(&here).unwrap_or(path).display().to_string()
}
