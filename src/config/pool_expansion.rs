//! Expands pools: their members become providers and models.
//!
//! A member becomes a provider, `<name>/<member>`, with its own models, `<name>/<member>:<model>`: quota,
//! gate, key and health are kept for each member. The pool's model becomes a route over its members,
//! under its old name.

use std::collections::BTreeMap;

use super::{
    model::Model,
    pool::Member,
    provider::{Key, Provider},
    sections::Config,
};

impl Member {
    fn provider(&self, name: &str, pool: &Provider) -> Provider {
        let Self { api_key_env, api_key_file, base_url, region, .. } = self.clone();
        let has_key = api_key_env.is_some() || api_key_file.is_some();
        let usual = match pool.key(name) {
            Key::VendorEnv(variable) => Some(variable),
            _ => None,
        };
        let place = Provider { region: region.or_else(|| pool.region.clone()), ..pool.clone() };
        Provider {
            // The member's own name is no vendor's name.
            kind: pool.vendor(name).map(|vendor| vendor.to_string()),
            api_key_env: if has_key { api_key_env } else { pool.api_key_env.clone().or(usual) },
            api_key_file: if has_key { api_key_file } else { pool.api_key_file.clone() },
            // The member's own key takes precedence over the pool's token.
            token_command: if has_key { Vec::new() } else { pool.token_command.clone() },
            base_url: base_url.or_else(|| place.endpoint(name)),
            pool: Vec::new(),
            ..place
        }
    }

    fn model(&self, pool: &Model) -> Model {
        Model {
            rpm: self.rpm.or(pool.rpm),
            tpm: self.tpm.or(pool.tpm),
            itpm: self.itpm.or(pool.itpm),
            otpm: self.otpm.or(pool.otpm),
            rpd: self.rpd.or(pool.rpd),
            concurrent: self.concurrent.or(pool.concurrent),
            ..pool.clone()
        }
    }
}

impl Provider {
    /// The pool's members with their names.
    fn members(&self) -> impl Iterator<Item = (String, &Member)> {
        let numbered = self.pool.iter().zip(1..);
        numbered.map(|(member, number)| {
            (member.name.clone().unwrap_or_else(|| format!("{number}")), member)
        })
    }

    /// A fault of the pool, if any.
    pub(super) fn pool_fault(&self) -> Option<String> {
        let names: Vec<String> = self.members().map(|(name, _)| name).collect();
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if let Some(bad) = names.iter().find(|name| name.is_empty() || !name.chars().all(plain)) {
            let bad = bad.escape_debug();
            return Some(format!(
                "has a member called \"{bad}\"; write letters, digits, '-', '_' or '.'"
            ));
        }
        let twice = names.iter().enumerate().find(|(place, name)| names[..*place].contains(name));
        twice.map(|(_, name)| format!("has two members called \"{name}\"; give each its own name"))
    }
}

impl Config {
    /// Replaces each pool's models with its members' models.
    pub(super) fn expand_pools(&mut self) {
        let pools: Vec<(String, Provider)> = self
            .providers
            .iter()
            .filter(|(_, provider)| !provider.pool.is_empty() && provider.pool_fault().is_none())
            .map(|(name, provider)| (name.clone(), provider.clone()))
            .collect();
        for (name, provider) in pools {
            let own = format!("{name}:");
            let models: Vec<String> =
                self.models.keys().filter(|model| model.starts_with(&own)).cloned().collect();
            let mut members: BTreeMap<&str, Vec<String>> = BTreeMap::new();
            for (member_name, member) in provider.members() {
                let place = format!("{name}/{member_name}");
                for model in &models {
                    let Some(section) = self.models.get(model) else { continue };
                    let section = member.model(section);
                    let id = format!("{place}:{}", &model[own.len()..]);
                    self.models.insert(id.clone(), section);
                    members.entry(model).or_default().push(id);
                }
                self.providers.insert(place, member.provider(&name, &provider));
            }
            for (model, members) in members {
                if let Some(section) = self.models.remove(model) {
                    self.pools.insert(model.to_owned(), (section, members));
                }
            }
        }
        let Self { routes, pools, .. } = self;
        for route in routes.values_mut() {
            let spread = |models: &[String]| -> Vec<String> {
                let members = |model: &String| match pools.get(model) {
                    Some((_, members)) => members.clone(),
                    None => vec![model.clone()],
                };
                models.iter().flat_map(members).collect()
            };
            let first = route.models.first().filter(|first| pools.contains_key(*first)).cloned();
            // Members of a pool are equivalent.
            route.equivalent.extend(first.filter(|first| !route.equivalent.contains(first)));
            (route.models, route.equivalent) = (spread(&route.models), spread(&route.equivalent));
        }
    }

    /// Restores the pools as they were written, for display.
    pub(super) fn collapse_pools(&mut self) {
        for (name, (section, members)) in std::mem::take(&mut self.pools) {
            for member in &members {
                self.models.remove(member);
                let provider = member.split_once(':').map_or("", |(provider, _)| provider);
                self.providers.remove(provider);
            }
            for route in self.routes.values_mut() {
                for models in [&mut route.models, &mut route.equivalent] {
                    if let Some(place) = models.iter().position(|model| members.contains(model)) {
                        models.insert(place, name.clone());
                        models.retain(|model| !members.contains(model));
                    }
                }
            }
            self.models.insert(name, section);
        }
    }

    /// The models as a batch names them: a pool by its own name, not by its members.
    pub fn model_names(&self) -> Vec<String> {
        let mut written = self.clone();
        written.collapse_pools();
        written.models.into_keys().collect()
    }

    /// The members of a pool's model; empty if the model is no pool.
    pub fn pool_members(&self, model: &str) -> &[String] {
        self.pools.get(model).map_or(&[], |(_, members)| members)
    }

    /// The pools' models, with their members' models.
    pub(super) fn pool_routes(&self) -> impl Iterator<Item = (&String, &[String])> {
        self.pools.iter().map(|(model, (_, members))| (model, members.as_slice()))
    }
}

#[cfg(test)]
mod tests {
    use tidegate_providers::Providers;
    use tidegate_quota::Dimension;
    use tidegate_types::Usage;

    use super::*;

    fn load(text: &str) -> Result<Config, String> {
        let file = tempfile::NamedTempFile::with_suffix(".toml").unwrap();
        std::fs::write(file.path(), text).unwrap();
        Config::from_layers(Some(file.path()), []).map_err(|error| error.to_string())
    }

    const POOL: &str = "[models.\"openai:gpt-6-luna\"]\nrpm = 100\ntpm = 9_000\n\
        [models.\"anthropic:claude-sonnet-5\"]\nrpm = 5\n\
        [[providers.openai.pool]]\nname = \"eu\"\napi-key-env = \"KEY_EU\"\nbase-url = \"https://eu.api.openai.com/v1\"\n\
        [[providers.openai.pool]]\nrpm = 40\n\
        [routes.r]\nmodels = [\"openai:gpt-6-luna\", \"anthropic:claude-sonnet-5\"]\n";

    #[test]
    fn members_are_providers_with_limits_of_their_own_behind_one_name() {
        let config = load(POOL).unwrap();
        let models = config.quota_models(&Providers::default()).unwrap();
        let of = |name: &str| models.iter().find(|model| model.id.as_str() == name);
        let (eu, second) =
            (of("openai/eu:gpt-6-luna").unwrap(), of("openai/2:gpt-6-luna").unwrap());
        let rpm = |limits: &tidegate_quota::Limits| limits.per_minute[Dimension::Requests];
        assert_eq!((rpm(&eu.limits), rpm(&second.limits)), (Some(100), Some(40)));
        assert_eq!(second.limits.per_minute[Dimension::Combined], Some(9_000));
        assert!(of("openai:gpt-6-luna").is_none(), "the name alone has no quota");
        let provider = |name: &str| config.providers[name].clone();
        assert_eq!(provider("openai/eu").api_key_env.as_deref(), Some("KEY_EU"));
        assert_eq!(provider("openai/2").api_key_env.as_deref(), Some("OPENAI_API_KEY"));
        assert_eq!(provider("openai/2").base_url.as_deref(), Some("https://api.openai.com/v1"));

        let routes = config.routes().unwrap();
        let pool = &routes["openai:gpt-6-luna"];
        let names: Vec<&str> = pool.models.iter().map(|model| model.as_str()).collect();
        assert_eq!(names, ["openai/eu:gpt-6-luna", "openai/2:gpt-6-luna"]);
        assert!(pool.by_room && pool.equivalent == pool.models);
        let route = &routes["r"];
        assert_eq!((route.models.len(), route.equivalent.len()), (3, 2), "{route:?}");

        // A member's calls cost what the pool's do.
        let (prices, at) = (config.prices().unwrap(), chrono::Utc::now().date_naive());
        let usage = Usage { uncached_input: 1_000, output: 10, ..Usage::default() };
        let cost = |model: &str| prices.cost_usd(&model.parse().unwrap(), &usage, at);
        assert!(cost("openai:gpt-6-luna").is_some());
        assert_eq!(cost("openai/eu:gpt-6-luna"), cost("openai:gpt-6-luna"));
    }

    #[test]
    fn what_is_shown_is_what_is_written() {
        let mut config = load(POOL).unwrap();
        config.collapse_pools();
        assert!(config.models.contains_key("openai:gpt-6-luna") && config.models.len() == 2);
        assert_eq!(config.routes["r"].models[0], "openai:gpt-6-luna");
        assert!(!config.providers.contains_key("openai/eu"));
        assert_eq!(config.providers["openai"].pool.len(), 2);
    }

    #[test]
    fn faults_name_the_pool() {
        let twice = load(
            "[[providers.openai.pool]]\nname = \"a\"\n[[providers.openai.pool]]\nname = \"a\"\n",
        );
        assert!(twice.unwrap_err().contains("providers.openai.pool has two members called \"a\""));
        let bad = load("[[providers.openai.pool]]\nname = \"a b\"\n").unwrap_err();
        assert!(bad.contains("has a member called \"a b\""), "{bad}");
    }
}
