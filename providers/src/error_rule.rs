//! A user's own rules for a provider's refusals. They precede the table of [`rules`](crate::rules).

use crate::{
    envelope::Envelope,
    error::{Kind, Span},
};

/// A rule: a reply with all of these signs is a failure of this kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ErrorRule {
    /// A code or type of the reply's body, or a number as text; case is ignored.
    pub code: Option<String>,
    /// The status; for a success with an error inside, the body's status.
    pub status: Option<u16>,
    /// A part of the message; case is ignored.
    pub contains: Option<String>,
    /// The reply's meaning.
    pub is: Meaning,
}

/// The meaning of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meaning {
    pub(crate) kind: Kind,
    pub(crate) span: Option<Span>,
}

impl Default for Meaning {
    fn default() -> Self {
        Self { kind: Kind::Transient, span: None }
    }
}

/// Failure types that a rule may name, as results and histories have them.
const TYPES: [(&str, Kind); 8] = [
    ("RateLimited", Kind::RateLimited),
    ("Overloaded", Kind::Overloaded),
    ("Transient", Kind::Transient),
    ("QuotaExhausted", Kind::QuotaExhausted),
    ("Unauthorized", Kind::Unauthorized),
    ("InvalidRequest", Kind::InvalidRequest),
    ("TooLarge", Kind::TooLarge),
    ("ContentRefused", Kind::ContentRefused),
];

/// Periods of limits that a rule may name.
const SPANS: [Span; 5] = [Span::Minute, Span::Hours, Span::Day, Span::Month, Span::Credit];

impl Meaning {
    /// Parses a failure type, and the period of its limit.
    ///
    /// # Errors
    /// A sentence that lists the allowed names.
    pub fn named(kind: &str, span: Option<&str>) -> Result<Self, String> {
        let known = TYPES.into_iter().find(|(name, _)| *name == kind);
        let (_, kind) = known.ok_or_else(|| {
            let names = TYPES.map(|(name, _)| name).join(", ");
            format!("is = \"{kind}\" is none of {names}")
        })?;
        let span = match span {
            None => None,
            Some(name) => {
                let known = SPANS.into_iter().find(|span| span.label() == name);
                Some(known.ok_or_else(|| {
                    let names = SPANS.map(Span::label).join(", ");
                    format!("span = \"{name}\" is none of {names}")
                })?)
            }
        };
        let is_limit = matches!(kind, Kind::RateLimited | Kind::QuotaExhausted);
        if span.is_some() && !is_limit {
            return Err("span is about limits: RateLimited and QuotaExhausted".to_owned());
        }
        Ok(Self { kind, span })
    }
}

impl ErrorRule {
    /// Whether a reply has all signs of the rule.
    pub(crate) fn fits(&self, status: u16, envelope: &Envelope) -> bool {
        let named = |code: &String| {
            let names = envelope.codes.iter().chain(&envelope.types).chain(&envelope.numbers);
            names.into_iter().any(|name| name.eq_ignore_ascii_case(code))
        };
        let said = |part: &String| envelope.has_message(&[&part.to_lowercase()]);
        self.code.as_ref().is_none_or(named)
            && self.status.is_none_or(|known| known == status)
            && self.contains.as_ref().is_none_or(said)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_fits_where_all_of_its_signs_do() {
        let envelope = Envelope::read(
            br#"{"error":{"code":1234,"type":"Tokens_Used_Up","message":"Nothing LEFT today"}}"#,
        );
        let rule = |code: Option<&str>, status, contains: Option<&str>| ErrorRule {
            code: code.map(str::to_owned),
            status,
            contains: contains.map(str::to_owned),
            is: Meaning::default(),
        };
        for (row, fits) in [
            (rule(Some("tokens_used_up"), None, None), true),
            (rule(Some("1234"), Some(400), Some("nothing left")), true),
            (rule(Some("1234"), Some(429), None), false),
            (rule(None, None, Some("something else")), false),
        ] {
            assert_eq!(row.fits(400, &envelope), fits, "{row:?}");
        }
    }

    #[test]
    fn types_and_spans_are_named() {
        let day = Meaning::named("QuotaExhausted", Some("day")).unwrap();
        assert_eq!((day.kind, day.span), (Kind::QuotaExhausted, Some(Span::Day)));
        for (kind, span, why) in [
            ("Exhausted", None, "none of RateLimited"),
            ("RateLimited", Some("week"), "none of minute"),
            ("Transient", Some("day"), "about limits"),
        ] {
            assert!(Meaning::named(kind, span).unwrap_err().contains(why));
        }
    }
}
