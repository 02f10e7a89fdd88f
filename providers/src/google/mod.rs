//! Google's application-default credentials: found as Google's own libraries find them
//! (google.aip.dev/auth/4110), and exchanged for an access token with one request per step.
//!
//! | found | in | becomes a token by |
//! |---|---|---|
//! | `service_account` | the file that `GOOGLE_APPLICATION_CREDENTIALS` names, else gcloud's | a JWT signed with its key (aip 4112, RFC 7523) |
//! | `authorized_user` | that file | its refresh token (aip 4113) |
//! | `external_account` | that file | the token of a file or URL, at the token service (aip 4117, RFC 8693) |
//! | `impersonated_service_account` | that file | the token of the credentials in it |
//! | nothing | | the metadata server of the machine (aip 4115) |
//!
//! `credentials` reads the file, `exchange` sends the requests. Nothing is retried here: the key
//! asks again when a token is due (`key.rs`).

mod credentials;
mod exchange;

use std::{env, ffi::OsString, fmt, fs, io, path::PathBuf};

use serde_json::Value;

use self::{
    credentials::Credentials,
    exchange::{Exchange, Token},
};
use crate::{json::text, secret::SecretError};

/// The host of the machine's metadata server.
const METADATA_HOST: &str = "metadata.google.internal";

/// The place of the credentials, without any part of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApplicationDefault {
    /// The file, and whether the environment names it; if so, it must exist.
    file: Option<(PathBuf, bool)>,
    metadata_host: String,
    /// The project whose quota is used, if the environment names one.
    project: Option<String>,
}

impl ApplicationDefault {
    /// Reads this process's environment.
    pub fn of_environment() -> Self {
        Self::among(|name| env::var_os(name).filter(|value| !value.is_empty()))
    }

    fn among(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let named = variable("GOOGLE_APPLICATION_CREDENTIALS").map(|path| (path.into(), true));
        let of_gcloud = || {
            let folder = variable("CLOUDSDK_CONFIG").map(PathBuf::from);
            let home = || Some(PathBuf::from(variable("HOME")?).join(".config/gcloud"));
            Some((folder.or_else(home)?.join("application_default_credentials.json"), false))
        };
        let text = |name| variable(name).and_then(|value| value.into_string().ok());
        let host = text("GCE_METADATA_HOST");
        Self {
            file: named.or_else(of_gcloud),
            metadata_host: host.unwrap_or_else(|| METADATA_HOST.to_owned()),
            project: text("GOOGLE_CLOUD_QUOTA_PROJECT"),
        }
    }

    /// Gets a token; blocks until then.
    pub(crate) fn token(&self) -> Result<Token, SecretError> {
        // In a thread of its own, because the caller may be inside a runtime, or have none.
        let asked = std::thread::scope(|scope| scope.spawn(|| self.ask()).join());
        asked.unwrap_or_else(|_| Err(self.fault("asking for a token came to nothing".to_owned())))
    }

    /// The project whose quota is used; users' credentials belong to no project.
    pub(crate) fn project(&self) -> Option<String> {
        let of_file = || {
            let file: Value = serde_json::from_str(&self.read().ok()??).ok()?;
            text(&file, "/quota_project_id").map(str::to_owned)
        };
        self.project.clone().or_else(of_file)
    }

    fn ask(&self) -> Result<Token, SecretError> {
        let fault = |why: String| self.fault(why);
        let credentials = match self.read()? {
            Some(text) => Some(Credentials::parse(&text).map_err(fault)?),
            None => None,
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| fault(error.to_string()))?;
        runtime
            .block_on(async {
                let exchange = Exchange::new()?;
                match credentials {
                    Some(credentials) => credentials.token(&exchange).await,
                    None => exchange.of_machine(&self.metadata_host).await,
                }
            })
            .map_err(fault)
    }

    /// The file's text; `None` if there is no file and none is named.
    fn read(&self) -> Result<Option<String>, SecretError> {
        let Some((path, is_named)) = &self.file else { return Ok(None) };
        match fs::read_to_string(path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !is_named => Ok(None),
            Err(error) => Err(self.fault(format!("it cannot be read: {error}"))),
        }
    }

    fn fault(&self, why: String) -> SecretError {
        SecretError::Google { place: self.to_string(), why }
    }

    fn has_file(&self) -> bool {
        self.file.as_ref().is_some_and(|(path, is_named)| *is_named || path.is_file())
    }
}

impl fmt::Display for ApplicationDefault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some((path, _)) if self.has_file() => write!(f, "{}", path.display()),
            _ => write!(f, "the metadata server {}", self.metadata_host),
        }
    }
}

#[cfg(test)]
mod tests;
