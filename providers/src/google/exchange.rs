//! The requests that get tokens; each is sent once.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use chrono::{DateTime, Utc};
use reqwest::{Client, RequestBuilder, redirect::Policy};
use serde_json::{Value, json};
use url::form_urlencoded;

use crate::{json::text, secret::Secret};

const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// Time-out of a metadata server: it is on the machine and answers fast, or does not exist.
const MACHINE_ANSWERS_WITHIN: Duration = Duration::from_secs(3);

/// Longest answer that is read, in bytes: more than any answer with a token.
const MAX_ANSWER: usize = 64 * 1024;

/// Lifetime in seconds of a token without a stated one, as of Google's tokens.
const LASTS: u64 = 3_600;

/// The token's scope: all rights of the account at Google Cloud.
pub(super) const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";

/// An access token, with its lifetime.
pub(crate) struct Token {
    pub(crate) secret: Secret,
    pub(crate) lasts: Duration,
}

pub(super) struct Exchange {
    http: Client,
    /// The machine's metadata server is never reached through a proxy.
    machine: Client,
}

impl Exchange {
    pub(super) fn new() -> Result<Self, String> {
        let client = |timeout| {
            let once = Client::builder().retry(reqwest::retry::never()).redirect(Policy::none());
            once.http1_only().pool_max_idle_per_host(0).timeout(timeout)
        };
        let machine = client(MACHINE_ANSWERS_WITHIN).no_proxy().tls_certs_only([]);
        let failed = |error: reqwest::Error| format!("no HTTPS client: {}", error.without_url());
        Ok(Self {
            http: client(ANSWERS_WITHIN).build().map_err(failed)?,
            machine: machine.build().map_err(failed)?,
        })
    }

    /// Gets a token from a token endpoint for this form.
    pub(super) async fn form(&self, url: &str, form: &[(&str, &str)]) -> Result<Token, String> {
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let request = self.http.post(url).body(body);
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        token(&answered(request, url).await?, url)
    }

    /// Gets a token for the machine's account.
    pub(super) async fn of_machine(&self, host: &str) -> Result<Token, String> {
        let url = format!(
            "http://{host}/computeMetadata/v1/instance/service-accounts/default/token?scopes={SCOPE}"
        );
        let request = self.machine.get(&url).header("metadata-flavor", "Google");
        let answer = answered(request, &url).await.map_err(|why| {
            format!(
                "there are no application-default credentials: GOOGLE_APPLICATION_CREDENTIALS is not set, gcloud's file is not there, and {why}; run `gcloud auth application-default login`, or name a key file in GOOGLE_APPLICATION_CREDENTIALS"
            )
        })?;
        token(&answer, &url)
    }

    /// Gets a token of a service account for a caller that may impersonate it.
    pub(super) async fn impersonated(
        &self,
        url: &str,
        source: &Token,
        delegates: &[String],
    ) -> Result<Token, String> {
        let lasts = format!("{LASTS}s");
        let body = json!({"scope": [SCOPE], "lifetime": lasts, "delegates": delegates});
        let request = self.http.post(url).bearer_auth(source.secret.expose()).json(&body);
        let answer = answered(request, url).await?;
        let ends = text(&answer, "/expireTime").and_then(|at| at.parse::<DateTime<Utc>>().ok());
        let lasts = ends.and_then(|at| SystemTime::from(at).duration_since(SystemTime::now()).ok());
        let lasts = lasts.unwrap_or(Duration::from_secs(LASTS));
        let secret = text(&answer, "/accessToken").and_then(|it| Secret::new(it).ok());
        let secret = secret.ok_or_else(|| format!("{} answers without a token", host(url)))?;
        Ok(Token { secret, lasts })
    }

    /// Gets the text at a URL.
    pub(super) async fn text(
        &self,
        url: &str,
        headers: &BTreeMap<String, String>,
    ) -> Result<String, String> {
        let request =
            headers.iter().fold(self.http.get(url), |it, (name, value)| it.header(name, value));
        String::from_utf8(received(request, url).await?)
            .map_err(|_| format!("{} answers with no text", host(url)))
    }
}

fn token(answer: &Value, url: &str) -> Result<Token, String> {
    let secret = text(answer, "/access_token").and_then(|it| Secret::new(it).ok());
    let secret = secret.ok_or_else(|| format!("{} answers without a token", host(url)))?;
    let lasts = answer.get("expires_in").and_then(Value::as_u64).unwrap_or(LASTS);
    Ok(Token { secret, lasts: Duration::from_secs(lasts) })
}

async fn answered(request: RequestBuilder, url: &str) -> Result<Value, String> {
    let body = received(request, url).await?;
    serde_json::from_slice(&body).map_err(|_| format!("{} answers with no JSON", host(url)))
}

async fn received(request: RequestBuilder, url: &str) -> Result<Vec<u8>, String> {
    let away = |error: reqwest::Error| {
        let what = if error.is_timeout() { "does not answer in time" } else { "is not reached" };
        format!("{} {what}", host(url))
    };
    let mut response = request.send().await.map_err(away)?;
    let (status, mut body) = (response.status(), Vec::new());
    while let Some(chunk) = response.chunk().await.map_err(away)? {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_ANSWER {
            return Err(format!("{} answers with more than a token", host(url)));
        }
    }
    if status.is_success() {
        return Ok(body);
    }
    // Only the name of the error is kept: the rest may quote the request.
    let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
    let name = text(&answer, "/error").or_else(|| text(&answer, "/error/status"));
    let is_name = |name: &&str| {
        name.len() < 40 && name.bytes().all(|it| it.is_ascii_alphabetic() || it == b'_')
    };
    let name = name.filter(is_name).map_or_else(String::new, |name| format!(" {name}"));
    let next = match name.as_str() {
        " invalid_grant" => {
            "; these credentials are revoked or out of date: run `gcloud auth application-default login` again, or make a new key"
        }
        _ => "",
    };
    Err(format!("{} refuses: status {}{name}{next}", host(url), status.as_u16()))
}

fn host(url: &str) -> String {
    let url = url::Url::parse(url).ok();
    let host = url.as_ref().and_then(|url| url.host_str()).unwrap_or("the token's URL");
    host.to_owned()
}
