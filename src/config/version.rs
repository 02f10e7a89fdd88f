//! The version that a worker registers as.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One version of a deployment of workers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// The deployment's name.
    pub deployment: String,
    /// The build.
    pub build_id: String,
}

impl Version {
    /// The command that directs new batches, and those that are not pinned, to this version.
    pub fn make_current(&self) -> String {
        format!(
            "temporal worker deployment set-current-version --deployment-name {} --build-id {}",
            self.deployment, self.build_id
        )
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.deployment, self.build_id)
    }
}

/// How a running batch reacts when another version becomes current.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Versioning {
    /// It moves to the next version, which knows the commands that the batch began with.
    #[default]
    AutoUpgrade,
    /// It stays with its version, whose workers must run until it ends.
    Pinned,
}
