//! Azure Blob Storage: a key, a SAS, an application, workload and managed identity, the CLI's login.

use object_store::azure::AzureConfigKey as Key;

use super::found::{Credential, CredentialKind as Kind, Variables};

/// Names that the Azure CLI reads, and the corresponding names here.
const CLI_NAMES: [(&str, &str, Key); 3] = [
    ("AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_ACCOUNT_NAME", Key::AccountName),
    ("AZURE_STORAGE_KEY", "AZURE_STORAGE_ACCOUNT_KEY", Key::AccessKey),
    (
        "AZURE_STORAGE_CONNECTION_STRING",
        "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
        Key::AccessKey,
    ),
];

/// Variables that are read together, by the first of them.
const SETS: [(&str, &[&str]); 2] = [
    ("AZURE_FEDERATED_TOKEN_FILE", &["AZURE_CLIENT_ID", "AZURE_TENANT_ID"]),
    ("AZURE_CLIENT_SECRET", &["AZURE_CLIENT_ID", "AZURE_TENANT_ID"]),
];

pub(super) fn find(variables: &Variables<'_>) -> Credential {
    let found = credential(variables);
    let unread = CLI_NAMES.iter().filter(|(name, _, option)| {
        variables.named(name).is_some() && variables.get(option).is_none()
    });
    let found = unread.fold(found, |found, (name, instead, _)| {
        found.remark(format!("{name} is not read: set {instead}"))
    });
    let is_named = variables.get(&Key::AccountName).is_some()
        || variables.is_true(&Key::UseEmulator)
        || variables.named("AZURE_STORAGE_ACCOUNT").is_some();
    if is_named { found } else { found.remark("set AZURE_STORAGE_ACCOUNT_NAME") }
}

fn credential(variables: &Variables<'_>) -> Credential {
    let get = |option: Key| variables.get(&option);
    if variables.is_true(&Key::SkipSignature) {
        return Credential::new(Kind::Anonymous, "the environment: AZURE_SKIP_SIGNATURE");
    }
    if let Some(kind) = get(Key::CredentialType).filter(|kind| kind.value != "auto") {
        let known = match kind.value {
            "bearer_token" => Kind::BearerToken,
            "access_key" => Kind::AccountKey,
            "client_secret" => Kind::ClientSecret,
            "workload_identity" => Kind::WorkloadIdentity,
            "sas_token" => Kind::Sas,
            "azure_cli" => Kind::AzureCli,
            "managed_identity" => Kind::ManagedIdentity,
            _ => Kind::Unusable,
        };
        return Credential::new(known, format!("asked for by {}", kind.name));
    }
    let fabric = [
        get(Key::FabricTokenServiceUrl),
        get(Key::FabricWorkloadHost),
        get(Key::FabricSessionToken),
        get(Key::FabricClusterIdentifier),
    ];
    if let [Some(url), Some(host), Some(token), Some(cluster)] = fabric {
        return Variables::credential(Kind::Fabric, [url, host, token, cluster]);
    }
    if let Some(token) = get(Key::Token) {
        return Variables::credential(Kind::BearerToken, [token]);
    }
    if let Some(key) = get(Key::AccessKey) {
        return Variables::credential(Kind::AccountKey, [key]);
    }
    if let (Some(client), Some(tenant)) = (get(Key::ClientId), get(Key::AuthorityId)) {
        if let Some(file) = get(Key::FederatedTokenFile) {
            return Variables::credential(Kind::WorkloadIdentity, [client, tenant, file]);
        }
        if let Some(secret) = get(Key::ClientSecret) {
            return Variables::credential(Kind::ClientSecret, [client, tenant, secret]);
        }
    }
    if let Some(sas) = get(Key::SasKey) {
        return Variables::credential(Kind::Sas, [sas]);
    }
    if variables.is_true(&Key::UseAzureCli) {
        return Credential::new(Kind::AzureCli, "`az login`, by AZURE_USE_AZURE_CLI");
    }
    if variables.is_true(&Key::UseEmulator) {
        return Credential::new(
            Kind::AccountKey,
            "the emulator's own, by AZURE_STORAGE_USE_EMULATOR",
        );
    }
    let service = get(Key::MsiEndpoint)
        .map_or_else(|| "169.254.169.254".to_owned(), |it| format!("the address in {}", it.name));
    let managed = Credential::new(
        Kind::ManagedIdentity,
        format!(
            "the metadata service, {service}; the environment holds no key, SAS or application"
        ),
    );
    variables.missing::<Key>(managed, &SETS)
}
