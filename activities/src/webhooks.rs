//! Webhooks: notify programs of the user's of a batch's end, signed by [Standard
//! Webhooks](https://www.standardwebhooks.com).

use std::{
    collections::BTreeMap,
    fmt,
    time::{Duration, SystemTime},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use reqwest::{StatusCode, redirect::Policy};
use serde::Serialize;
use sha2::Sha256;
use tidegate_types::seconds_since_1970;
use tidegate_workflows::contract::{Ended, Notify, Progress};
use url::Url;

/// Time-out of the receiver's reply.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// Prefix of a secret, before its base64.
const SECRET_PREFIX: &str = "whsec_";

/// Length of a secret in bytes, as the standard allows.
const SECRET_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// Where a webhook's messages are sent, and the secret that signs them.
pub struct Webhook {
    url: Url,
    secret: Vec<u8>,
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The address may contain a token.
        let host = self.url.host_str().unwrap_or_default();
        f.debug_struct("Webhook").field("host", &host).finish_non_exhaustive()
    }
}

impl Webhook {
    /// A webhook at this address. Its secret is `whsec_` and 24 to 64 bytes as base64.
    ///
    /// # Errors
    /// A sentence that states the remedy; it contains neither address nor secret.
    pub fn new(url: &str, secret: &str) -> Result<Self, String> {
        let url = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let url = url.ok_or("url must be an http:// or https:// URL")?;
        let encoded = secret.strip_prefix(SECRET_PREFIX);
        let bytes = encoded.and_then(|encoded| STANDARD.decode(encoded).ok());
        match bytes.filter(|bytes| SECRET_BYTES.contains(&bytes.len())) {
            Some(secret) => Ok(Self { url, secret }),
            None => Err(format!(
                "its secret must be {SECRET_PREFIX} and 24 to 64 bytes as base64: printf 'whsec_%s\\n' \"$(openssl rand -base64 32)\" makes one"
            )),
        }
    }

    /// `v1,` and the base64 of the HMAC-SHA256 of `id.timestamp.body`.
    fn signature(&self, id: &str, timestamp: u64, body: &[u8]) -> Option<String> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.secret).ok()?;
        mac.update(format!("{id}.{timestamp}.").as_bytes());
        mac.update(body);
        Some(format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())))
    }
}

/// All webhooks of the configuration, by name.
#[derive(Debug, Default)]
pub struct Webhooks {
    client: reqwest::Client,
    /// Each webhook, or the reason why it cannot be used here.
    known: BTreeMap<String, Result<Webhook, String>>,
}

/// A message that was not delivered, and the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Undelivered {
    why: String,
    /// Whether the receiver refuses all further messages.
    pub is_final: bool,
}

impl Undelivered {
    fn again(why: impl Into<String>) -> Self {
        Self { why: why.into(), is_final: false }
    }
}

impl Webhooks {
    /// A client for these webhooks.
    ///
    /// # Errors
    /// The HTTP client cannot be made.
    pub fn new(known: BTreeMap<String, Result<Webhook, String>>) -> Result<Self, reqwest::Error> {
        let client = reqwest::Client::builder()
            .redirect(Policy::none())
            .timeout(ANSWER_WITHIN)
            .user_agent(concat!("tidegate/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(Self { client, known })
    }

    /// Checks that there is a webhook of this name.
    ///
    /// # Errors
    /// A sentence that states the remedy.
    pub fn check(&self, name: &str) -> Result<(), String> {
        if self.known.contains_key(name) {
            return Ok(());
        }
        let known: Vec<&str> = self.known.keys().map(String::as_str).collect();
        let known = if known.is_empty() {
            "none is;".to_owned()
        } else {
            format!("configured: {}; choose one of them, or", known.join(", "))
        };
        Err(format!(
            "webhook \"{}\" is not configured; {known} add a [webhooks.NAME] section to the workers' configuration",
            name.escape_debug()
        ))
    }

    /// The webhook of this name, with its secret.
    ///
    /// # Errors
    /// The errors of [`Self::check`], or the secret is missing here.
    pub fn get(&self, name: &str) -> Result<&Webhook, String> {
        self.check(name)?;
        match self.known.get(name) {
            Some(Ok(webhook)) => Ok(webhook),
            Some(Err(why)) => Err(format!("webhook \"{name}\" cannot be used: {why}")),
            None => Err(format!("webhook \"{name}\" is not configured")),
        }
    }

    /// Sends one message once. The id of a message is equal in each repetition.
    ///
    /// # Errors
    /// The reason why the message was not delivered.
    pub async fn send(&self, notify: &Notify) -> Result<(), Undelivered> {
        let webhook = self.get(&notify.webhook).map_err(Undelivered::again)?;
        let body = serde_json::to_vec(&Message::from(notify))
            .map_err(|error| Undelivered::again(format!("it cannot be written: {error}")))?;
        let id = format!("msg_{}", notify.run);
        let timestamp = seconds_since_1970(SystemTime::now());
        let signature = webhook
            .signature(&id, timestamp, &body)
            .ok_or_else(|| Undelivered::again("it cannot be signed"))?;
        let request = self
            .client
            .post(webhook.url.clone())
            .header("content-type", "application/json")
            .header("webhook-id", id)
            .header("webhook-timestamp", timestamp)
            .header("webhook-signature", signature)
            .body(body);
        let host = webhook.url.host_str().unwrap_or_default();
        match request.send().await.map(|reply| reply.status()) {
            Ok(status) if status.is_success() => Ok(()),
            Ok(StatusCode::GONE) => Err(Undelivered {
                why: format!("{host} answers 410: it wants no more messages"),
                is_final: true,
            }),
            Ok(status) if status.is_redirection() => Err(Undelivered::again(format!(
                "{host} answers {}, and redirects are not followed; correct webhooks.{}.url",
                status.as_u16(),
                notify.webhook
            ))),
            Ok(status) => Err(Undelivered::again(format!("{host} answers {}", status.as_u16()))),
            Err(error) if error.is_timeout() => Err(Undelivered::again(format!(
                "{host} does not answer within {} s",
                ANSWER_WITHIN.as_secs()
            ))),
            Err(error) => {
                let error = error.without_url();
                Err(Undelivered::again(format!("{host} cannot be reached: {error}")))
            }
        }
    }
}

/// The body. It contains nothing of a document.
#[derive(Debug, Serialize)]
struct Message<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    timestamp: &'a str,
    data: Data<'a>,
}

#[derive(Debug, Serialize)]
struct Data<'a> {
    batch: &'a str,
    run: &'a str,
    status: Ended,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'a str>,
    /// In the form of `report.json`.
    #[serde(flatten)]
    progress: &'a Progress,
}

impl<'a> From<&'a Notify> for Message<'a> {
    fn from(notify: &'a Notify) -> Self {
        let Notify { batch, run, status, why, finished_at, progress, .. } = notify;
        let data = Data { batch, run, status: *status, why: why.as_deref(), progress };
        Self { kind: "batch.finished", timestamp: finished_at, data }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the standard's own test: `whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw`.
    #[test]
    fn a_message_is_signed_as_the_standard_says() {
        let webhook =
            Webhook::new("https://example.com", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signature = webhook.signature(
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            br#"{"test": 2432232314}"#,
        );
        assert_eq!(signature.unwrap(), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn what_cannot_be_used_is_said_without_the_secret() {
        for (url, secret) in [
            ("ftp://host/", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
            ("https://host/", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
            ("https://host/", "whsec_MfKQ9r8G"),
            ("https://host/", "whsec_no base64 at all"),
        ] {
            let why = Webhook::new(url, secret).unwrap_err();
            assert!(!why.contains("MfKQ") && !why.contains("no base64"), "{why}");
        }
        let url = "https://token@host/hush";
        let webhook = Webhook::new(url, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        assert_eq!(format!("{webhook:?}"), "Webhook { host: \"host\", .. }");
        let known =
            [("good".to_owned(), Ok(webhook)), ("bare".to_owned(), Err("X is not set".to_owned()))];
        let webhooks = Webhooks::new(known.into()).unwrap();
        assert!(webhooks.check("good").is_ok() && webhooks.check("bare").is_ok());
        let other = webhooks.check("goood").unwrap_err();
        assert!(other.contains("configured: bare, good;"), "{other}");
        assert!(webhooks.get("bare").unwrap_err().contains("X is not set"));
        assert!(Webhooks::default().check("x").unwrap_err().contains("none is;"));
    }
}
