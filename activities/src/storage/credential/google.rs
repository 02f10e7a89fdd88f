//! Google Cloud Storage: a service account's key, application default credentials, metadata server.

use std::path::Path;

use object_store::gcp::GoogleConfigKey as Key;
use serde_json::Value;

use super::found::{Credential, CredentialKind as Kind, Variables};

/// Relative to the home folder.
const DEFAULT: &str = ".config/gcloud/application_default_credentials.json";

pub(super) fn find(variables: &Variables<'_>, home: &Path) -> Credential {
    let get = |option: Key| variables.get(&option);
    if variables.is_true(&Key::SkipSignature) {
        return Credential::new(Kind::Anonymous, "the environment: GOOGLE_SKIP_SIGNATURE");
    }
    if let Some(token) = get(Key::BearerToken) {
        return Variables::credential(Kind::BearerToken, [token]);
    }
    match (get(Key::ServiceAccount), get(Key::ServiceAccountKey)) {
        (Some(file), None) => {
            let file = (Path::new(file.value), file.name);
            return of_file(file.0, file.1, Some(Kind::ServiceAccountKey));
        }
        (None, Some(key)) => return Variables::credential(Kind::ServiceAccountKey, [key]),
        (Some(file), Some(key)) => {
            return Variables::credential(Kind::Unusable, [file, key])
                .remark("unset one of the two");
        }
        (None, None) => {}
    }
    if let Some(file) = get(Key::ApplicationCredentials) {
        return of_file(Path::new(file.value), file.name, None);
    }
    let file = home.join(DEFAULT);
    if file.exists() {
        return of_file(&file, "`gcloud auth application-default login`", None);
    }
    Credential::new(
        Kind::MetadataServer,
        format!(
            "metadata.google.internal; GOOGLE_APPLICATION_CREDENTIALS is not set, and there is no {}",
            file.display()
        ),
    )
}

/// Reads the kind from a file of credentials, unless `known` states it.
fn of_file(file: &Path, named_by: &str, known: Option<Kind>) -> Credential {
    let from = format!("{}, named by {named_by}", file.display());
    let unusable = |remark: String| Credential::new(Kind::Unusable, &from).remark(remark);
    let bytes = match std::fs::read(file) {
        Ok(bytes) => bytes,
        Err(error) => return unusable(format!("{} cannot be read: {error}", file.display())),
    };
    let said: Value = match serde_json::from_slice(&bytes) {
        Ok(said) => said,
        // The parser's message could quote a key.
        Err(_) => return unusable(format!("{} is no JSON: make it anew", file.display())),
    };
    match (known, said["type"].as_str()) {
        (Some(kind), _) => Credential::new(kind, from),
        (None, Some("service_account")) => Credential::new(Kind::ServiceAccountKey, from),
        (None, Some("authorized_user")) => Credential::new(Kind::AuthorizedUser, from),
        (None, other) => unusable(format!(
            "it is of the type {}, and only service_account and authorized_user are read here: set GOOGLE_BEARER_TOKEN from `gcloud auth print-access-token`, which ends after an hour, or run where a metadata server is",
            other.unwrap_or("that it does not say")
        )),
    }
}
