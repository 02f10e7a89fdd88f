//! The result of one check.

use serde::Serialize;

use crate::cli::output::{BAD, DOUBTFUL, GOOD, styled};

/// The outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    Ok,
    /// It works, but not as well as it could.
    Doubtful,
    Fail,
}

/// The finding, and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Check {
    pub(super) name: String,
    pub(super) state: State,
    pub(super) seen: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) remedy: Option<String>,
}

impl Check {
    pub(super) fn ok(name: &str, seen: impl Into<String>) -> Self {
        Self { name: name.to_owned(), state: State::Ok, seen: seen.into(), remedy: None }
    }

    pub(super) fn doubtful(name: &str, seen: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            state: State::Doubtful,
            seen: seen.into(),
            remedy: Some(remedy.into()),
        }
    }

    pub(super) fn fail(name: &str, seen: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { state: State::Fail, ..Self::doubtful(name, seen, remedy) }
    }

    pub(super) fn text(&self) -> String {
        let sign = match self.state {
            State::Ok => styled(GOOD, "ok  "),
            State::Doubtful => styled(DOUBTFUL, "hm  "),
            State::Fail => styled(BAD, "FAIL"),
        };
        let remedy =
            self.remedy.as_ref().map_or_else(String::new, |remedy| format!("      → {remedy}\n"));
        format!("{sign}  {}: {}\n{remedy}", self.name, self.seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::output::plain;

    #[test]
    fn a_fault_comes_with_its_remedy() {
        assert_eq!(plain(&Check::ok("redis", "7.4").text()), "ok    redis: 7.4\n");
        assert_eq!(
            plain(&Check::fail("redis", "away", "start it").text()),
            "FAIL  redis: away\n      → start it\n"
        );
    }
}
