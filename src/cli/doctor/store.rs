//! `tidegate doctor s3://bucket/prefix`: the credential that opens a store, the operations that it
//! permits, and missing rights.

use serde_json::{Value, json};
use tidegate_activities::{
    Storage,
    storage::{
        Error,
        access::{Access, Tried},
        credential::{Credential, CredentialKind},
    },
};
use url::Url;

use crate::{
    cli::paths,
    config::{Config, mask},
};

use super::check::{Check, State};

/// What is found out about a location.
#[derive(Default)]
struct Found {
    credential: Option<Credential>,
    access: Option<Access>,
    checks: Vec<Check>,
}

/// Tries all operations at the location; `config` shows whether workers may use it. Returns the result as
/// checks and as JSON.
pub(super) async fn probe(place: &str, config: Option<&Config>) -> (Vec<Check>, Value) {
    let mut found = Found::default();
    if let Err(fault) = found.probe(place, config).await {
        found.checks.push(fault);
    }
    let may = found.access.as_ref().map(|access| {
        json!({
            "list": access.list.works(),
            "read": access.read.works(),
            "create_if_absent": access.create.works(),
            "write": access.write.works(),
            "delete": access.delete.works(),
        })
    });
    let json = json!({
        "store": mask::url(place),
        "credential": found.credential,
        "may": may,
        "read_only": found.access.as_ref().map(is_read_only),
    });
    (found.checks, json)
}

impl Found {
    /// # Errors
    /// The fault that prevents a trial.
    async fn probe(&mut self, place: &str, config: Option<&Config>) -> Result<(), Check> {
        let fault = |seen: &str, remedy: String| Check::fail("store", seen, remedy);
        let remedy = "write file:///folder/, s3://bucket/prefix/, gs://…, az://… or https://…";
        let url = Url::parse(place).map_err(|_| fault("it is no URI", remedy.to_owned()))?;
        let credential = Credential::find(&url);
        // Whatever names no bucket or host is taken for a file.
        if matches!(credential.kind, CredentialKind::User) && url.scheme() != "file" {
            return Err(fault("it names no store", remedy.to_owned()));
        }
        let credential = self.credential.insert(credential);
        let kind = credential.kind;
        self.checks.push(check_credential(credential));
        self.checks.extend(config.and_then(|config| check_roots(place, config)));
        let location = Storage::for_access_test(place).and_then(|storage| storage.resolve(place));
        let location = location.map_err(|error| {
            let remedy = "correct what the line above says, or the URI".to_owned();
            fault(&error.to_string(), remedy)
        })?;
        if location.exists_as_folder_or_file() == Some(false) {
            let remedy = format!("make it (mkdir -p {})", paths::display_url(place));
            return Err(fault("there is no such folder", remedy));
        }
        let access = self.access.insert(location.try_access(kind).await);
        self.checks.extend(check_access(&url, kind, access));
        Ok(())
    }
}

fn check_credential(credential: &Credential) -> Check {
    let seen = format!("{}; {}", credential.kind.name(), credential.from);
    match (credential.kind, credential.remarks.is_empty()) {
        (CredentialKind::Unusable, _) => {
            Check::fail("credential", seen, credential.remarks.join("\n      → "))
        }
        (_, true) => Check::ok("credential", seen),
        (_, false) => Check::doubtful("credential", seen, credential.remarks.join("\n      → ")),
    }
}

/// Checks whether workers with this configuration would refuse the location.
fn check_roots(place: &str, config: &Config) -> Option<Check> {
    let error = Storage::new(config.roots()).ok()?.resolve(place).err()?;
    matches!(&error, Error::Invalid(why) if why.contains("outside the allowed roots")).then(|| {
        Check::doubtful(
            "roots",
            "it lies under none of storage.roots, so that no batch may use it",
            format!("add \"{}\" to roots in [storage]", mask::url(place)),
        )
    })
}

fn is_read_only(access: &Access) -> bool {
    access.read.works() != Some(false)
        && access.write.works().is_none()
        && (access.create.is_forbidden() || access.create.works().is_none())
        && access.list.works() != Some(false)
}

fn check_access(url: &Url, kind: CredentialKind, access: &Access) -> Vec<Check> {
    let mut checks = Vec::new();
    if let Tried::Fails(error) = &access.credential {
        let remedy = match kind {
            CredentialKind::InstanceRole => {
                "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run where a role is given: docs/stores.md"
            }
            CredentialKind::MetadataServer => {
                "run `gcloud auth application-default login`, set GOOGLE_APPLICATION_CREDENTIALS, or run where a service account is given: docs/stores.md"
            }
            CredentialKind::ManagedIdentity => {
                "set AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_TOKEN, or run where an identity is given: docs/stores.md"
            }
            _ => {
                "see that the role, application or token is still valid, and that its service can be reached"
            }
        };
        checks.push(Check::fail("getting the credential", error.to_string(), remedy));
        return checks;
    }
    let steps = [
        ("list", &access.list),
        ("read", &access.read),
        ("create if absent", &access.create),
        ("write", &access.write),
        ("delete", &access.delete),
    ];
    let read_only = is_read_only(access);
    for (name, step) in steps {
        match step {
            Tried::Works => checks.push(Check::ok(name, "it works")),
            // The final verdict mentions it.
            Tried::Untried(_) if access.list.works() == Some(false) || read_only => {}
            Tried::Untried(why) => checks.push(Check::ok(name, format!("not tried: {why}"))),
            Tried::Fails(_) if read_only => {}
            Tried::Fails(error) => {
                checks.push(Check::fail(name, error.to_string(), remedy(url, kind, name, error)));
            }
        }
    }
    if read_only {
        let right = right(url, kind, "create if absent");
        checks.push(Check::doubtful(
            "use",
            "it is read only",
            match url.scheme() {
                "http" | "https" => {
                    "right for sources; results need a file system or a bucket".to_owned()
                }
                _ => format!("right for sources; results need more: {right}"),
            },
        ));
    } else if checks.iter().all(|check| check.state == State::Ok) {
        checks.push(Check::ok("use", "sources and results"));
    }
    if let Some(left) = &access.left {
        checks.push(Check::fail("left behind", left.clone(), "remove it by hand"));
    }
    checks
}

/// The remedy, by the store's error.
fn remedy(url: &Url, kind: CredentialKind, step: &str, error: &Error) -> String {
    let is_s3 = matches!(url.scheme(), "s3" | "s3a");
    let of_code = match error.code().unwrap_or_default() {
        "InvalidAccessKeyId" | "NotSignedUp" => {
            "the store does not know this key: see that it is one of this account and this endpoint (AWS_ENDPOINT)"
        }
        "SignatureDoesNotMatch" | "AuthenticationFailed" | "InvalidAuthenticationInfo" => {
            "the secret does not belong to this key, or the signature or SAS has ended: set it anew"
        }
        "ExpiredToken" | "InvalidToken" | "InvalidSecurity" | "AuthenticationRequired" => {
            "the token has ended: get a new one"
        }
        "RequestTimeTooSkewed" => "set this machine's clock",
        "NoSuchBucket" if is_s3 => {
            "correct the bucket's name, make it, or name its endpoint (AWS_ENDPOINT)"
        }
        "NoSuchBucket" | "ContainerNotFound" => {
            "correct the name of the bucket or container, or make it"
        }
        "AuthorizationHeaderMalformed"
        | "PermanentRedirect"
        | "IllegalLocationConstraintException" => {
            "the bucket lies in another region: set AWS_REGION to it"
        }
        _ => "",
    };
    match error {
        _ if !of_code.is_empty() => of_code.to_owned(),
        Error::Forbidden(_) => right(url, kind, step),
        Error::Misconfigured(_) if step == "create if absent" => {
            "results need a store that creates an object only where nothing is (If-None-Match): use another store or a newer version of it".to_owned()
        }
        Error::Misconfigured(_) if !is_s3 => "see the name of the bucket or container".to_owned(),
        Error::Misconfigured(_) => {
            "see the bucket's name, its region (AWS_REGION) and its endpoint (AWS_ENDPOINT)".to_owned()
        }
        _ => "check the network, a proxy and the endpoint".to_owned(),
    }
}

/// The vendor's name of the permission that a step needs.
fn right(url: &Url, kind: CredentialKind, step: &str) -> String {
    match (url.scheme(), step) {
        // It has every right, and a role gives it none.
        _ if kind == CredentialKind::AccountKey => {
            "see that the key is one of this account, and that the account's network rules let this machine in"
        }
        (_, "list" | "read") if kind == CredentialKind::Sas => {
            "make a SAS with read and list that has not ended"
        }
        _ if kind == CredentialKind::Sas => {
            "make a SAS with create, write and delete, too, that has not ended"
        }
        ("s3" | "s3a", "list") => "give it s3:ListBucket on the bucket",
        ("s3" | "s3a", "read") => "give it s3:GetObject on the prefix",
        ("s3" | "s3a", "delete") => "give it s3:DeleteObject on the prefix",
        ("s3" | "s3a", _) => "give it s3:PutObject, s3:DeleteObject and s3:AbortMultipartUpload on the prefix",
        ("gs", "list" | "read") => "give it the role Storage Object Viewer on the bucket",
        ("gs", _) => "give it the role Storage Object User on the bucket",
        ("file", _) => "let the user that workers run as do it (chown, chmod)",
        (_, "list" | "read") => {
            "give it the role Storage Blob Data Reader (Owner and Contributor are not enough)"
        }
        _ => {
            "give it the role Storage Blob Data Contributor (Owner and Contributor are not enough)"
        }
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_folder_is_tried_and_left_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let url = paths::folder_url(folder.path()).unwrap();
        let (checks, json) = probe(&url, None).await;
        assert!(checks.iter().all(|check| check.state == State::Ok), "{checks:?}");
        assert_eq!(json["may"]["create_if_absent"], true);
        assert_eq!(json["read_only"], false);
        assert_eq!(json["credential"]["kind"], "user");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let config = Config::default();
        let outside = probe(&url, Some(&config)).await;
        assert!(outside.0.iter().any(|check| check.name == "roots"), "{:?}", outside.0);
        let gone = probe(&format!("{url}gone/"), None).await;
        assert!(gone.0.iter().any(|check| check.seen == "there is no such folder"));
        assert_eq!(probe("data", None).await.0[0].state, State::Fail);
        for none in ["s3://", "ftp://host/folder"] {
            let (checks, json) = probe(none, Some(&config)).await;
            let seen: Vec<_> =
                checks.iter().map(|check| (check.state, check.seen.as_str())).collect();
            assert_eq!(seen, [(State::Fail, "it names no store")]);
            assert_eq!(json["credential"], Value::Null);
        }
    }

    #[test]
    fn a_fault_names_what_mends_it() {
        let forbidden = |code: &str| Error::Forbidden(format!("403: <Code>{code}</Code>"));
        let by = |kind: CredentialKind, url: &str, step: &str, error: &Error| {
            remedy(&Url::parse(url).unwrap(), kind, step, error)
        };
        let of = |url: &str, step: &str, error: &Error| {
            by(CredentialKind::WorkloadIdentity, url, step, error)
        };
        assert!(of("s3://b/p", "list", &forbidden("AccessDenied")).contains("s3:ListBucket"));
        assert!(of("s3://b/p", "list", &forbidden("InvalidAccessKeyId")).contains("know this key"));
        assert!(of("gs://b/p", "write", &forbidden("AccessDenied")).contains("Object User"));
        let mismatch = forbidden("AuthorizationPermissionMismatch");
        assert!(of("az://c/p", "read", &mismatch).contains("Data Reader"));
        let wrong = forbidden("AuthorizationFailure");
        assert!(by(CredentialKind::AccountKey, "az://c/p", "list", &wrong).contains("the key is"));
        assert!(by(CredentialKind::Sas, "az://c/p", "list", &wrong).contains("make a SAS"));
        let gone = Error::Misconfigured("404: <Code>NoSuchBucket</Code>".to_owned());
        assert!(of("s3://b/p", "list", &gone).contains("AWS_ENDPOINT"));
        assert!(!of("az://c/p", "list", &gone).contains("AWS_ENDPOINT"));
        let twice = Error::Misconfigured("the store created it twice".to_owned());
        assert!(of("s3://b/p", "create if absent", &twice).contains("If-None-Match"));
    }

    #[test]
    fn a_place_that_can_only_be_read_has_one_remark() {
        let access = Access {
            credential: Tried::Works,
            list: Tried::Works,
            read: Tried::Works,
            create: Tried::Fails(Error::Forbidden("no".to_owned())),
            write: Tried::Untried("nothing can be written"),
            delete: Tried::Untried("nothing can be written"),
            left: None,
        };
        let url = Url::parse("s3://b/p").unwrap();
        let checks = check_access(&url, CredentialKind::AccessKey, &access);
        let names: Vec<_> = checks.iter().map(|check| check.name.as_str()).collect();
        assert_eq!(names, ["list", "read", "use"]);
        assert_eq!(checks[2].seen, "it is read only");
        assert!(checks[2].remedy.as_ref().unwrap().contains("s3:PutObject"));
    }
}
