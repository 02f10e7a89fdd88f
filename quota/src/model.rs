//! One model and its quota.

use std::{borrow::Cow, sync::Arc};

use tidegate_types::{Charge, ModelId, Usage, fnv::fnv1a_onto};

use crate::{
    conversions::EXACT,
    dimension::{Amounts, DayLimit, Limited},
    lanes::Lanes,
    limits::{LimitError, Limits},
};

/// One model and its quota.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelQuota {
    /// The model.
    pub id: ModelId,
    /// Its limits.
    pub limits: Limits,
    /// The rules by which the provider counts calls towards its limits.
    pub charge: Charge,
    /// The lanes' shares of the limits.
    pub lanes: Arc<Lanes>,
    /// The name of the quota that it shares with other models, whose limits and lanes are equal;
    /// `None` for a quota of its own.
    pub group: Option<Arc<str>>,
}

impl ModelQuota {
    /// Checks a model's limits.
    ///
    /// # Errors
    /// [`LimitError`] names the invalid value and the remedy.
    pub fn new(
        id: ModelId,
        limits: Limits,
        charge: Charge,
        lanes: Arc<Lanes>,
    ) -> Result<Self, LimitError> {
        let each = Limited::ALL.into_iter().map(|limited| (limited.title(), limits.get(limited)));
        let days = DayLimit::ALL.into_iter().map(|day| (day.title(), limits.day(day)));
        let stated: Vec<(&str, Option<u64>)> = each.chain(days).collect();
        if let Some((what, _)) = stated.iter().find(|(_, limit)| *limit == Some(0)) {
            return Err(LimitError::Zero(what));
        }
        if let Some((what, _)) = stated.iter().find(|(_, limit)| *limit > Some(EXACT)) {
            return Err(LimitError::TooLarge(what));
        }
        if stated.iter().all(|(_, limit)| limit.is_none()) {
            return Err(LimitError::None);
        }
        if !(limits.margin > 0.0 && limits.margin <= 1.0) {
            return Err(LimitError::Margin(limits.margin));
        }
        if limits.window.is_zero() {
            return Err(LimitError::Duration("window"));
        }
        if limits.burst.is_some_and(|burst| burst.is_zero()) {
            return Err(LimitError::Duration("burst"));
        }
        Ok(Self { id, limits, charge, lanes, group: None })
    }

    /// Makes this model share a quota with others.
    pub fn sharing(self, group: &str) -> Self {
        Self { group: Some(group.into()), ..self }
    }

    /// The name of its quota: the group, or the model.
    pub fn quota_name(&self) -> Cow<'_, str> {
        self.group.as_deref().map_or_else(|| self.id.to_string().into(), Cow::Borrowed)
    }

    /// The key under which a template is learned: models that share a quota answer differently.
    pub(crate) fn learns_as(&self, template: u64) -> u64 {
        match self.group {
            Some(_) => fnv1a_onto(template, self.id.to_string().bytes()),
            None => template,
        }
    }

    /// The amounts of one call with these tokens.
    pub fn amounts(&self, input: u64, output: u64) -> Amounts {
        Amounts { combined: self.charge.combined(input, output), ..Amounts::call(input, output) }
    }

    /// The amounts that a finished call is charged.
    pub fn used(&self, usage: &Usage, max_output_tokens: u64) -> Amounts {
        let mut amounts = self.amounts(self.charge.input(usage), usage.output);
        if !self.charge.unused_returns {
            amounts.combined = amounts.combined.max(max_output_tokens);
        }
        amounts
    }

    /// The amounts charged for a call that was refused or failed before any work: no tokens, and a
    /// request if the provider counts such calls.
    pub fn unused(&self) -> Amounts {
        Amounts { requests: u64::from(self.charge.failed_calls), ..Amounts::default() }
    }

    /// This model with `1 / parts` of its limits: a worker's own share while Redis is away.
    pub fn share(&self, parts: u64) -> Self {
        let part = |limit: Option<u64>| limit.map(|limit| (limit / parts.max(1)).max(1));
        let limits = Limits {
            per_minute: self.limits.per_minute.map(part),
            concurrent: part(self.limits.concurrent),
            requests_per_day: part(self.limits.requests_per_day),
            tokens_per_day: part(self.limits.tokens_per_day),
            ..self.limits
        };
        Self { limits, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_the_scripts_cannot_count_is_refused() {
        let with = |limits| {
            let lanes = Arc::new(Lanes::single());
            ModelQuota::new("a:b".parse().unwrap(), limits, Charge::default(), lanes).map(drop)
        };
        let (few, many) = (Some(EXACT), Some(EXACT + 1));
        let limits = Limits { concurrent: few, tokens_per_day: few, ..Limits::default() };
        let limits = limits.with(crate::dimension::Dimension::Combined, EXACT);
        assert_eq!(with(limits), Ok(()));
        for limits in [
            limits.with(crate::dimension::Dimension::Combined, EXACT + 1),
            Limits { concurrent: many, ..limits },
            Limits { requests_per_day: many, ..limits },
        ] {
            let refused = with(limits).unwrap_err().to_string();
            assert!(refused.ends_with("is above 2^53; leave it out for no limit"), "{refused}");
        }
    }
}
