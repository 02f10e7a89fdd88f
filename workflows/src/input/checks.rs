//! Validation of a batch's checks, without evaluating their expressions.

use std::collections::BTreeSet;

use crate::contract::Check;

/// Maximum number of checks: more would take longer than the answer itself.
const MAX_CHECKS: usize = 50;

/// Maximum length of a name, which appears in results, reports and messages.
const MAX_NAME_CHARS: usize = 64;

/// Verifies a batch's checks. `escalates` needs a `route`; `excluded` is a given field that
/// excludes checks; the check of quotes needs `has_evidence`.
///
/// # Errors
/// A sentence that names the check and states its fault.
pub(super) fn check(
    given: Option<&[Check]>,
    (escalates, route): (bool, Option<&str>),
    excluded: Option<&str>,
    has_evidence: bool,
) -> Result<(), String> {
    if escalates && route.is_none() {
        return Err("escalate is of no use without route: name the models in the order in which they are asked".to_owned());
    }
    let checks = given.unwrap_or_default();
    if checks.is_empty() {
        return match (escalates, given) {
            (true, _) => Err("escalate is of no use without checks, which say what goes to the next model of the route".to_owned()),
            (_, Some(_)) => Err("checks is an empty list; leave it out".to_owned()),
            _ => Ok(()),
        };
    }
    if checks.len() > MAX_CHECKS {
        return Err(format!("checks are {}; at most {MAX_CHECKS} are looked at", checks.len()));
    }
    let mut names = BTreeSet::new();
    for (place, check) in checks.iter().enumerate() {
        let Check { name, .. } = check;
        let length = name.chars().count();
        if name.trim().is_empty() || length > MAX_NAME_CHARS || name.contains(char::is_control) {
            return Err(format!(
                "checks[{place}]: name must be a text of 1 to {MAX_NAME_CHARS} characters"
            ));
        }
        if !names.insert(name) {
            return Err(format!(
                "checks[{place}]: \"{name}\" is there twice; give each its own name"
            ));
        }
        check_one(check, has_evidence)
            .map_err(|why| format!("checks[{place}] \"{name}\": {why}"))?;
    }
    match excluded {
        Some(field) => Err(format!(
            "checks and {field} exclude each other: each answer is checked, and asked for again, by itself; leave out {field}"
        )),
        None => Ok(()),
    }
}

fn check_one(check: &Check, has_evidence: bool) -> Result<(), String> {
    match (&check.expression, &check.judge) {
        (Some(_), Some(_)) => Err("give only one of expression, judge".to_owned()),
        (Some(expression), None) if expression.trim().is_empty() => {
            Err("expression is empty".to_owned())
        }
        (None, Some(judge)) if judge.instructions.trim().is_empty() => {
            Err("judge.instructions are empty: say what an answer must be to pass".to_owned())
        }
        (None, None) if check.is_of_quotes() && has_evidence => Ok(()),
        (None, None) if check.is_of_quotes() => {
            Err("quotes are not asked for; set evidence, or give an expression or a judge"
                .to_owned())
        }
        (None, None) => Err("give an expression or a judge".to_owned()),
        _ => Ok(()),
    }
}
