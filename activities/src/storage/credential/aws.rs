//! S3: keys, web identity, container, instance. Profiles are read by the AWS CLI only.

use std::path::Path;

use object_store::aws::AmazonS3ConfigKey as Key;

use super::found::{Credential, CredentialKind as Kind, Variables};

/// Variables that are read together, by the first of them.
const SETS: [(&str, &[&str]); 3] = [
    ("AWS_WEB_IDENTITY_TOKEN_FILE", &["AWS_ROLE_ARN"]),
    ("AWS_ROLE_ARN", &["AWS_WEB_IDENTITY_TOKEN_FILE"]),
    ("AWS_CONTAINER_CREDENTIALS_FULL_URI", &["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"]),
];

const EXPORT: &str = "eval \"$(aws configure export-credentials --format env)\"";

pub(super) fn find(variables: &Variables<'_>, home: &Path) -> Credential {
    let get = |option: Key| variables.get(&option);
    if variables.is_true(&Key::SkipSignature) {
        return Credential::new(Kind::Anonymous, "the environment: AWS_SKIP_SIGNATURE");
    }
    match (get(Key::AccessKeyId), get(Key::SecretAccessKey), get(Key::Token)) {
        (Some(id), Some(secret), None) => {
            return Variables::credential(Kind::AccessKey, [id, secret]);
        }
        (Some(id), Some(secret), Some(token)) => {
            return Variables::credential(Kind::TemporaryKey, [id, secret, token]);
        }
        (Some(found), None, _) => {
            return Variables::credential(Kind::Unusable, [found])
                .remark("set AWS_SECRET_ACCESS_KEY, too");
        }
        (None, Some(found), _) => {
            return Variables::credential(Kind::Unusable, [found])
                .remark("set AWS_ACCESS_KEY_ID, too");
        }
        (None, None, _) => {}
    }
    if let (Some(token), Some(role)) = (get(Key::WebIdentityTokenFile), get(Key::RoleArn)) {
        let from = format!("{} of {}, the token in {}", role.value, role.name, token.value);
        return readable(Credential::new(Kind::WebIdentity, from), token.value);
    }
    if let Some(uri) = get(Key::ContainerCredentialsRelativeUri) {
        return Credential::new(Kind::TaskRole, format!("169.254.170.2, by {}", uri.name));
    }
    let pod = (get(Key::ContainerCredentialsFullUri), get(Key::ContainerAuthorizationTokenFile));
    if let (Some(uri), Some(token)) = pod {
        let from = format!("the address in {}, the token in {}", uri.name, token.value);
        return readable(Credential::new(Kind::PodIdentity, from), token.value);
    }
    let service = get(Key::MetadataEndpoint)
        .map_or_else(|| "169.254.169.254".to_owned(), |it| format!("the address in {}", it.name));
    let from = format!("the metadata service, {service}; the environment holds no key");
    let instance = variables.missing::<Key>(Credential::new(Kind::InstanceRole, from), &SETS);
    match profile(variables, home) {
        Some(profile) => instance.remark(format!(
            "{profile}, and profiles (SSO, assumed roles) are read by the AWS CLI alone: {EXPORT}"
        )),
        None => instance,
    }
}

/// Finds where a profile is named; returns a phrase for messages.
fn profile(variables: &Variables<'_>, home: &Path) -> Option<String> {
    let named = ["AWS_PROFILE", "AWS_DEFAULT_PROFILE"]
        .iter()
        .find_map(|name| Some(format!("{name} names {}", variables.named(name)?)));
    let file = || {
        let mut files = [".aws/credentials", ".aws/config"].iter().map(|file| home.join(file));
        let file = files.find(|file| file.is_file())?;
        Some(format!("{} holds profiles", file.display()))
    };
    named.or_else(file)
}

fn readable(found: Credential, file: &str) -> Credential {
    match std::fs::File::open(file) {
        Ok(_) => found,
        Err(error) => found.remark(format!("{file} cannot be read: {error}")),
    }
}
