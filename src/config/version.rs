//! The version that a worker registers as.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One version of a deployment of workers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// The deployment's name.
    pub deployment: String,
    /// Which build of it.
    pub build_id: String,
}

impl Version {
    /// The command that gives it new batches, and those that are not pinned.
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

/// What becomes of a batch when another version is made current.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Versioning {
    /// The next version goes on with it: it knows the commands that the batch began with.
    #[default]
    AutoUpgrade,
    /// It stays with the version that it began with, whose workers must stay until it ends.
    Pinned,
}
