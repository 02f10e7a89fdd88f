//! `[[providers.<name>.pool]]`: several keys, accounts, regions or endpoints behind one name.

use std::{collections::BTreeMap, path::PathBuf};

use serde::{Deserialize, Serialize};

use super::model::Model;

/// One member. Absent keys are taken from the provider's own section, or the model's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Member {
    /// Its name, such as `eu`; default: its number.
    pub name: Option<String>,
    /// The environment variable that holds its key.
    pub api_key_env: Option<String>,
    /// The file that holds its key.
    pub api_key_file: Option<PathBuf>,
    /// Its endpoint.
    pub base_url: Option<String>,
    /// Its region, if the vendor has an endpoint for each.
    pub region: Option<String>,
    /// Its requests a minute, for each of the models.
    pub rpm: Option<u64>,
    /// Its input and output tokens a minute, for each of the models.
    pub tpm: Option<u64>,
    /// Its input tokens a minute, for each of the models.
    pub itpm: Option<u64>,
    /// Its output tokens a minute, for each of the models.
    pub otpm: Option<u64>,
    /// Its requests a day, for each of the models.
    pub rpd: Option<u64>,
    /// Its concurrent requests, for each of the models.
    pub concurrent: Option<u64>,
}

/// The pools' models as written in the file, each with the models of its members.
pub(super) type Pools = BTreeMap<String, (Model, Vec<String>)>;
