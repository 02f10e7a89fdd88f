//! The keys of the door: the known callers, and the models that each may ask.

use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use axum::http::{HeaderMap, header};
use sha2::{Digest, Sha256};
use tidegate_types::{Lane, Tenant};

use crate::config::{
    Config,
    serve::{INTERACTIVE, OPEN},
};

/// All keys of this door.
pub(super) struct Keys {
    keys: Vec<Arc<Holder>>,
    /// The caller without a key, if the door accepts one.
    open: Option<Arc<Holder>>,
}

/// A caller, known by its key.
#[derive(Default)]
pub(super) struct Holder {
    /// The key's name in logs, metrics and Redis.
    pub(super) name: String,
    pub(super) tenant: Tenant,
    pub(super) lane: Lane,
    /// Models and routes that the key may ask; empty: all.
    pub(super) models: Vec<String>,
    secret: String,
    /// SHA-256 of the secret.
    digest: [u8; 32],
}

impl Keys {
    /// Reads the configured keys. `is_loopback` is whether only this machine can reach the door.
    ///
    /// # Errors
    /// A key is missing or given twice, or no key is configured and the door is not open.
    pub(super) fn new(config: &Config, is_loopback: bool) -> anyhow::Result<Self> {
        let mut keys: Vec<Arc<Holder>> = Vec::new();
        for (name, key) in &config.serve.keys {
            let section = || format!("[serve.keys.{name}]");
            let secret = key.secret().with_context(section)?;
            if let Some(other) = keys.iter().find(|other| other.secret == secret) {
                bail!(
                    "{} and [serve.keys.{}] have one key; give each its own",
                    section(),
                    other.name
                );
            }
            keys.push(Arc::new(Holder {
                name: name.clone(),
                tenant: key.tenant.clone().unwrap_or_default(),
                lane: Lane::new(key.lane.as_deref().unwrap_or(INTERACTIVE))
                    .with_context(section)?,
                models: key.models.clone(),
                digest: Sha256::digest(&secret).into(),
                secret,
            }));
        }
        let open = config.serve.open_on_loopback && is_loopback;
        ensure!(
            open || !keys.is_empty(),
            "no caller has access: add a [serve.keys.<name>] section with key-env or key-file, or set serve.open-on-loopback on an address of this machine"
        );
        let open = open.then(|| {
            Ok::<_, anyhow::Error>(Arc::new(Holder {
                name: OPEN.to_owned(),
                lane: Lane::new(INTERACTIVE)?,
                ..Holder::default()
            }))
        });
        Ok(Self { keys, open: open.transpose()? })
    }

    /// Every caller that the door accepts.
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<Holder>> {
        self.keys.iter().chain(&self.open)
    }

    /// The caller whose key the request has, as a bearer token or in Anthropic's `x-api-key`. Each key is
    /// compared in constant time.
    pub(super) fn holder(&self, headers: &HeaderMap) -> Option<Arc<Holder>> {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let authorization = text(header::AUTHORIZATION.as_str());
        let (scheme, key) = authorization.and_then(|it| it.split_once(' ')).unwrap_or_default();
        // Schemes are compared without regard to case (RFC 9110, 11.1).
        let bearer = scheme.eq_ignore_ascii_case("bearer").then_some(key);
        let given = Sha256::digest(bearer.or_else(|| text("x-api-key")).unwrap_or_default());
        let mut found = None;
        for key in &self.keys {
            let both = key.digest.iter().zip(&given);
            let differs = both.fold(0, |differs, (a, b)| differs | (a ^ b));
            if differs == 0 {
                found = Some(key);
            }
        }
        found.or(self.open.as_ref()).cloned()
    }
}

impl Holder {
    /// Whether the key may ask this model or route.
    pub(super) fn may_ask(&self, name: &str) -> bool {
        self.models.is_empty() || self.models.iter().any(|model| model == name)
    }

    pub(super) fn secret(&self) -> &[u8] {
        self.secret.as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use tidegate_calls::dialect::account_fields;

    use super::*;

    fn keys(open: bool, is_loopback: bool, models: &str) -> anyhow::Result<Keys> {
        let mut file = tempfile::NamedTempFile::new()?;
        writeln!(file, "a-key-of-some-length")?;
        let mut text = format!("[serve]\nopen-on-loopback = {open}\n");
        if !models.is_empty() {
            let path = file.path().display();
            text += &format!(
                "[serve.keys.web]\nkey-file = \"{path}\"\ntenant = \"acme\"\nmodels = {models}\n"
            );
        }
        let toml = tempfile::NamedTempFile::with_suffix(".toml")?;
        std::fs::write(
            toml.path(),
            text + "[models.\"openai:m\"]\nrpm = 1\n[models.\"openai:n\"]\nrpm = 1\n[models.\"anthropic:m\"]\nrpm = 1\n",
        )?;
        Keys::new(&Config::from_layers(Some(toml.path()), [])?, is_loopback)
    }

    fn with(name: &'static str, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(header::HeaderName::from_static(name), value.parse().unwrap())])
    }

    #[test]
    fn a_key_is_known_in_both_dialects_and_no_other_is() {
        let keys = keys(false, true, "[\"openai:m\", \"openai:n\"]").unwrap();
        let holder = keys.holder(&with("authorization", "Bearer a-key-of-some-length")).unwrap();
        assert_eq!((holder.name.as_str(), holder.tenant.as_str()), ("web", "acme"));
        assert!(holder.may_ask("openai:m") && !holder.may_ask("anthropic:m"));
        assert_eq!(account_fields::only_provider(&holder.models), Some("openai"));
        assert!(keys.holder(&with("x-api-key", "a-key-of-some-length")).is_some());
        assert!(keys.holder(&with("authorization", "bearer a-key-of-some-length")).is_some());
        for wrong in ["Bearer a-key-of-some-lengt", "Bearer ", "a-key-of-some-length"] {
            assert!(keys.holder(&with("authorization", wrong)).is_none(), "{wrong}");
        }
        assert!(keys.holder(&HeaderMap::new()).is_none(), "loopback included");
    }

    #[test]
    fn callers_without_a_key_are_accepted_on_loopback_alone() {
        let open = keys(true, true, "").unwrap();
        assert_eq!(open.holder(&HeaderMap::new()).unwrap().name, "open");
        for (open, is_loopback) in [(true, false), (false, true)] {
            let refused = keys(open, is_loopback, "").err().unwrap().to_string();
            assert!(refused.contains("no caller has access"), "{refused}");
        }
    }
}
