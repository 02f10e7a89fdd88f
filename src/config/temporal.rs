//! Temporal's own variables and `temporal.toml`.

use std::collections::HashMap;

use temporalio_common::envconfig::{
    ClientConfigProfile, ConfigError, LoadClientConfigProfileOptions, load_client_config_profile,
};

/// The profile in force, as every Temporal SDK reads it. An empty variable counts as unset, because
/// container platforms pass absent values that way.
///
/// # Errors
/// A file or a variable that cannot be read.
pub fn profile() -> Result<ClientConfigProfile, ConfigError> {
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    let set: HashMap<String, String> =
        std::env::vars_os().filter_map(text).filter(|(_, value)| !value.is_empty()).collect();
    load_client_config_profile(LoadClientConfigProfileOptions::default(), Some(&set))
}
