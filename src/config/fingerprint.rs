//! A fingerprint of the settings that all workers of a fleet must share.

use serde_json::Value;
use tidegate_calls::worker_status::{Configuration, stored_configuration};

use super::{fault::dotted_path, sections::Config};

/// Sections that decide admission, routing and cost. All others are each worker's own: addresses, keys,
/// folders.
const SHARED: [&str; 6] = ["gate", "lanes", "models", "quotas", "routes", "tenants"];

impl Config {
    /// Limits, lanes, routes, budgets and pauses, by their dotted paths.
    pub fn shared_settings(&self) -> Configuration {
        let (all, mut settings) = (self.set_keys(), Configuration::new());
        for section in SHARED {
            flatten(&mut vec![section], &all[section], &mut settings);
        }
        settings
    }

    /// The fingerprint of the shared settings: twelve hexadecimal digits, equal in workers with equal
    /// settings.
    pub fn fingerprint(&self) -> String {
        stored_configuration(&self.shared_settings()).0
    }
}

fn flatten<'a>(path: &mut Vec<&'a str>, value: &'a Value, settings: &mut Configuration) {
    match value {
        // A model or a tenant without settings is there, too.
        Value::Object(fields) if path.len() == 1 || !fields.is_empty() => {
            for (name, field) in fields {
                path.push(name);
                flatten(path, field, settings);
                path.pop();
            }
        }
        Value::String(text) => drop(settings.insert(dotted_path(path), text.clone())),
        value => drop(settings.insert(dotted_path(path), value.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{model::Model, sections::Tenant};

    fn fingerprint_of(text: &str) -> String {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        Config::from_layers(Some(file.path()), []).unwrap().fingerprint()
    }

    #[test]
    fn each_shared_setting_has_its_path() {
        let mut config = Config::default();
        let gate = config.shared_settings();
        assert_eq!(gate["gate.pause-ttl"], "5m");
        config.models.insert("a:b".to_owned(), Model { rpm: Some(9), ..Model::default() });
        config.tenants.insert("acme".to_owned(), Tenant::default());
        let settings = config.shared_settings();
        assert_eq!(settings["models.\"a:b\".rpm"], "9");
        assert_eq!(settings["tenants.acme"], "{}");
        assert!(!settings.keys().any(|key| key.starts_with("redis")), "each worker's own");
        assert_ne!(config.fingerprint(), Config::default().fingerprint());
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
