//! A fingerprint of the settings that all workers of a fleet must share.

use sha2::{Digest, Sha256};

use super::sections::Config;

/// Sections that decide admission, routing and cost. All others are each worker's own: addresses, keys,
/// folders.
const SHARED: [&str; 6] = ["gate", "lanes", "models", "quotas", "routes", "tenants"];

impl Config {
    /// Twelve hexadecimal digits; equal in workers with equal limits, lanes, routes, budgets and pauses.
    pub fn fingerprint(&self) -> String {
        let all = self.set_keys();
        let mut hash = Sha256::new();
        for section in SHARED {
            hash.update(format!("{section}={}\n", all[section]));
        }
        hash.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fingerprint_of(text: &str) -> String {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        Config::from_layers(Some(file.path()), []).unwrap().fingerprint()
    }

    #[test]
    fn only_what_the_fleet_shares_counts() {
        let model = "[models.\"anthropic:claude-sonnet-5\"]\nrpm = 1000\n";
        let shared = fingerprint_of(model);
        assert_eq!(shared.len(), 12);
        let own = "[worker]\nmetrics-listen = \"off\"\n[redis]\nurl = \"redis://elsewhere\"\n";
        assert_eq!(fingerprint_of(&format!("{own}{model}")), shared);
        assert_ne!(fingerprint_of(&model.replace("1000", "1001")), shared);
        assert_ne!(
            fingerprint_of(&format!("{model}[tenants.acme]\ndaily-budget-usd = 1.0\n")),
            shared
        );
    }
}
