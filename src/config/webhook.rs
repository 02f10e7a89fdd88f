//! `[webhooks.<name>]`: webhooks that are told of a batch's end.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tidegate_activities::webhooks;

use super::secret;

/// One webhook, which a batch's input names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Webhook {
    /// The URL of its messages: `http://` or `https://`. Redirects are not followed.
    pub url: String,
    /// The environment variable that holds its secret: `whsec_` and 24 to 64 bytes as base64.
    pub secret_env: Option<String>,
    /// The file that holds its secret, and nothing else.
    pub secret_file: Option<PathBuf>,
}

impl Webhook {
    /// Converts it to a webhook with its secret.
    ///
    /// # Errors
    /// A sentence about why the secret is not available.
    pub fn open(&self) -> Result<webhooks::Webhook, String> {
        let secret = secret::read("secret", self.secret_env.as_ref(), self.secret_file.as_ref())
            .map_err(|error| format!("{error:#}"))?;
        webhooks::Webhook::new(&self.url, &secret)
    }
}
