//! Rights to read the page, and to act from it.

use std::net::SocketAddr;

use axum::http::{HeaderMap, header};
use base64::{Engine as _, engine::general_purpose::STANDARD};

/// The access rules of a page.
#[derive(Clone)]
pub(super) struct Access {
    pub(super) bound: SocketAddr,
    /// The token for actions; without it, there are no actions.
    pub(super) token: Option<String>,
}

impl Access {
    /// Whether the page may be read.
    pub(super) fn may_read(&self, headers: &HeaderMap) -> bool {
        self.bound.ip().is_loopback() || self.knows(headers)
    }

    /// Whether an authorized person intends the action. A password that a browser adds by itself is
    /// no proof; a bearer token that a script has set is.
    pub(super) fn may_act(&self, headers: &HeaderMap) -> bool {
        let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        given.is_some_and(|value| value.starts_with("Bearer ")) && self.knows(headers)
    }

    /// Whether the request has the token, as a bearer token or as the browser's password.
    fn knows(&self, headers: &HeaderMap) -> bool {
        let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let (Some(token), Some(given)) = (&self.token, given) else { return false };
        if let Some(basic) = given.strip_prefix("Basic ") {
            let decoded = STANDARD.decode(basic).ok();
            let decoded = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
            let password = decoded.as_deref().and_then(|pair| pair.split_once(':'));
            return password.is_some_and(|(_, password)| equals_in_constant_time(password, token));
        }
        given.strip_prefix("Bearer ").is_some_and(|given| equals_in_constant_time(given, token))
    }
}

/// Compares in constant time.
fn equals_in_constant_time(given: &str, token: &str) -> bool {
    let differs = given.bytes().zip(token.bytes()).fold(0, |differs, (a, b)| differs | (a ^ b));
    given.len() == token.len() && differs == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: header::HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, value.parse().unwrap())])
    }

    #[test]
    fn loopback_is_read_and_other_addresses_want_the_token() {
        let token = Some("tide".to_owned());
        let local = Access { bound: "127.0.0.1:80".parse().unwrap(), token };
        assert!(local.may_read(&HeaderMap::new()));
        let open = Access { bound: "10.0.0.1:80".parse().unwrap(), ..local.clone() };
        let reads = |value: &str| open.may_read(&with(header::AUTHORIZATION, value));
        // `:tide`, `ops:tide`, `:ebb`
        assert!(["Bearer tide", "Basic OnRpZGU=", "Basic b3BzOnRpZGU="].map(reads) == [true; 3]);
        assert!(["Bearer tid", "Bearer tidex", "Basic OmViYg==", "tide"].map(reads) == [false; 4]);
        let acts = |value: &str| local.may_act(&with(header::AUTHORIZATION, value));
        assert!(acts("Bearer tide"));
        assert!(!acts("Basic OnRpZGU="), "a browser adds it by itself");
        assert!(!local.may_act(&HeaderMap::new()));
        let none = Access { token: None, ..local };
        assert!(!none.may_act(&with(header::AUTHORIZATION, "Bearer ")));
    }
}
