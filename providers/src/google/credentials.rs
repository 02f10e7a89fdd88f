//! Reads a file of credentials, and gets a token for it.

use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use rustls::{
    SignatureScheme,
    crypto::aws_lc_rs::sign::any_supported_type,
    pki_types::{PrivateKeyDer, pem::PemObject},
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::exchange::{Exchange, SCOPE, Token};

/// Address at which users' tokens are renewed, if their file names none.
const TOKEN_URI: &str = "https://oauth2.googleapis.com/token";

/// The longest lifetime that Google accepts for such a JWT.
const JWT_LASTS: Duration = Duration::from_secs(3_600);

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Credentials {
    ServiceAccount(ServiceAccount),
    AuthorizedUser(AuthorizedUser),
    ExternalAccount(ExternalAccount),
    ImpersonatedServiceAccount(Impersonated),
}

#[derive(Deserialize)]
pub(super) struct ServiceAccount {
    client_email: String,
    private_key_id: Option<String>,
    private_key: String,
    token_uri: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct AuthorizedUser {
    client_id: String,
    client_secret: String,
    refresh_token: String,
    token_uri: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct ExternalAccount {
    audience: String,
    subject_token_type: String,
    token_url: String,
    credential_source: CredentialSource,
    service_account_impersonation_url: Option<String>,
}

/// The source of another identity provider's token.
#[derive(Deserialize)]
struct CredentialSource {
    file: Option<PathBuf>,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    format: Format,
}

#[derive(Default, Deserialize)]
struct Format {
    #[serde(default, rename = "type")]
    kind: String,
    subject_token_field_name: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Impersonated {
    source_credentials: Box<Credentials>,
    service_account_impersonation_url: String,
    #[serde(default)]
    delegates: Vec<String>,
}

impl Credentials {
    /// Parses the file; the error contains nothing of its text.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let known =
            "service_account, authorized_user, external_account, impersonated_service_account";
        let value: Value = serde_json::from_str(text).map_err(|_| "it is no JSON".to_owned())?;
        let kind = value.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        if !known.split(", ").any(|it| it == kind) {
            return Err(format!("its type is none of {known}"));
        }
        serde_json::from_value(value).map_err(|fault| {
            // For a value of the wrong type, serde quotes the value.
            let fault = fault.to_string();
            let missing = fault.strip_prefix("missing field ").map(|it| it.replace('`', ""));
            match missing {
                Some(field) => format!("its {kind} has no {field}"),
                None => format!("its {kind} has a field of another type than it must have"),
            }
        })
    }

    pub(super) async fn token(&self, exchange: &Exchange) -> Result<Token, String> {
        match self {
            Self::ServiceAccount(account) => account.token(exchange).await,
            Self::AuthorizedUser(user) => {
                let form = [
                    ("grant_type", "refresh_token"),
                    ("client_id", &user.client_id),
                    ("client_secret", &user.client_secret),
                    ("refresh_token", &user.refresh_token),
                ];
                let url = user.token_uri.as_deref().unwrap_or(TOKEN_URI);
                exchange.form(url, &form).await
            }
            Self::ExternalAccount(account) => account.token(exchange).await,
            Self::ImpersonatedServiceAccount(account) => {
                let source = Box::pin(account.source_credentials.token(exchange)).await?;
                let (url, delegates) =
                    (&account.service_account_impersonation_url, &account.delegates);
                exchange.impersonated(url, &source, delegates).await
            }
        }
    }
}

impl ServiceAccount {
    async fn token(&self, exchange: &Exchange) -> Result<Token, String> {
        let url = self.token_uri.as_deref().unwrap_or(TOKEN_URI);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let claims = json!({
            "iss": self.client_email, "scope": SCOPE, "aud": url,
            "iat": now.as_secs(), "exp": (now + JWT_LASTS).as_secs(),
        });
        let header = json!({"alg": "RS256", "typ": "JWT", "kid": self.private_key_id});
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let said = format!("{}.{}", part(&header), part(&claims));
        let signature = URL_SAFE_NO_PAD.encode(signed(&self.private_key, said.as_bytes())?);
        let assertion = format!("{said}.{signature}");
        let grant = "urn:ietf:params:oauth:grant-type:jwt-bearer";
        let form = [("grant_type", grant), ("assertion", assertion.as_str())];
        exchange.form(url, &form).await
    }
}

/// Signs a text with RS256.
pub(super) fn signed(private_key: &str, text: &[u8]) -> Result<Vec<u8>, String> {
    let unusable = || "its private_key is no RSA key in PEM".to_owned();
    let key = PrivateKeyDer::from_pem_slice(private_key.as_bytes()).map_err(|_| unusable())?;
    let key = any_supported_type(&key).map_err(|_| unusable())?;
    let signer = key.choose_scheme(&[SignatureScheme::RSA_PKCS1_SHA256]).ok_or_else(unusable)?;
    signer.sign(text).map_err(|_| unusable())
}

impl ExternalAccount {
    async fn token(&self, exchange: &Exchange) -> Result<Token, String> {
        let subject = self.credential_source.token(exchange).await?;
        let form = [
            ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
            ("requested_token_type", "urn:ietf:params:oauth:token-type:access_token"),
            ("audience", &self.audience),
            ("scope", SCOPE),
            ("subject_token_type", &self.subject_token_type),
            ("subject_token", &subject),
        ];
        let token = exchange.form(&self.token_url, &form).await?;
        match &self.service_account_impersonation_url {
            Some(url) => exchange.impersonated(url, &token, &[]).await,
            None => Ok(token),
        }
    }
}

impl CredentialSource {
    async fn token(&self, exchange: &Exchange) -> Result<String, String> {
        let text = match (&self.file, &self.url) {
            (Some(file), _) => fs::read_to_string(file).map_err(|error| {
                format!("the token file {} cannot be read: {error}", file.display())
            })?,
            (None, Some(url)) => exchange.text(url, &self.headers).await?,
            (None, None) => {
                return Err("its credential_source has neither file nor url; AWS's and programs are not known here: use token-command".to_owned());
            }
        };
        if self.format.kind != "json" {
            return Ok(text.trim().to_owned());
        }
        let field = self.format.subject_token_field_name.as_deref().unwrap_or("access_token");
        let value: Option<Value> = serde_json::from_str(&text).ok();
        let token = value.as_ref().and_then(|value| value.get(field)?.as_str());
        token
            .map(str::to_owned)
            .ok_or_else(|| format!("what its credential_source names has no text {field}"))
    }
}
