//! `[quotas.<name>]`: models that share one limit, as classes of models do at Anthropic, some models
//! at OpenAI, and all of a project at Gemini.

use super::{
    model::Model,
    sections::{Config, Group},
};

impl Config {
    /// The group that a model belongs to, by name.
    pub(super) fn group_of(&self, model: &str) -> Option<(&str, &Group)> {
        let mut groups = self.quotas.iter();
        let group = groups.find(|(_, group)| group.models.iter().any(|member| member == model));
        group.map(|(name, group)| (name.as_str(), group))
    }

    /// The section that holds a model's limits, by name: its own, or the first of its group that states
    /// limits.
    pub(super) fn limits_of<'a>(&'a self, name: &'a str, own: &'a Model) -> (&'a str, &'a Model) {
        let members = self.group_of(name).into_iter().flat_map(|(_, group)| &group.models);
        let sections = members.filter_map(|member| self.models.get_key_value(member));
        let mut stated = sections.filter(|(_, model)| model.states_limits());
        stated.next().map_or((name, own), |(name, model)| (name.as_str(), model))
    }

    /// Faults of the groups, each with the group's name.
    pub(super) fn group_faults(&self) -> Vec<(&str, String)> {
        let mut faults = Vec::new();
        for (name, group) in &self.quotas {
            if let Err(what) = tidegate_quota::key::check_group(name) {
                faults.push((name.as_str(), format!("has a name that {what}")));
            }
            if group.models.is_empty() {
                faults
                    .push((name, "names no model; write models = [\"provider:model\", …]".into()));
            }
            if self.models.contains_key(name) && !group.models.contains(name) {
                let what = "has the name of a model that is not in it; give it another".to_owned();
                faults.push((name, what));
            }
            for member in &group.models {
                faults.extend(self.member_fault(name, member).map(|what| (name.as_str(), what)));
            }
        }
        faults
    }

    fn member_fault(&self, name: &str, member: &str) -> Option<String> {
        let Some(own) = self.models.get(member) else {
            return Some(format!(
                "names {member}, which is not configured; add [models.\"{member}\"]"
            ));
        };
        let (first, _) = self.group_of(member)?;
        if first != name {
            return Some(format!("names {member}, which is in quotas.\"{first}\" already"));
        }
        let (stating, model) = self.limits_of(member, own);
        (own.states_limits() && !own.has_limits_of(model)).then(|| {
            format!("shares one limit, and {member} states another than {stating}; state it once")
        })
    }
}
