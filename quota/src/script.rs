//! The Lua scripts, joined from their parts when this crate is built.

use std::collections::HashMap;

use redis::{ErrorKind, RedisResult, ServerErrorKind, Value, aio::ConnectionLike};

/// One script, run by its hash; its text is sent when the server does not have it.
#[derive(Debug)]
pub(crate) struct Script {
    text: String,
    hash: String,
}

macro_rules! script {
    ($name:literal, $($include:literal),+) => {
        concat!($(include_str!(concat!("../../lua/include/", $include, ".lua")),)+ include_str!(concat!("../../lua/", $name, ".lua")))
    };
}

const RESERVE: &str = script!(
    "reserve-7",
    "arguments",
    "state",
    "ledger",
    "tuning",
    "gate",
    "lanes",
    "queue",
    "learned"
);
const SETTLE: &str = script!(
    "settle-7",
    "arguments",
    "state",
    "ledger",
    "tuning",
    "adapt",
    "gate",
    "closing",
    "learned"
);
const PAUSE: &str = script!("pause-6", "arguments", "state", "gate", "closing");
const LIMITS: &str = script!("limits-5", "arguments", "state", "tuning", "closing");
const INSPECT: &str = script!("inspect-6", "arguments", "state", "ledger", "tuning", "gate");
const RENEW: &str = script!("renew-1", "arguments", "state");

/// The scripts of a budget stand alone: they share nothing with the limiter's.
pub(crate) const BUDGET_RESERVE: &str = include_str!("../../lua/budget-reserve-1.lua");
pub(crate) const BUDGET_SETTLE: &str = include_str!("../../lua/budget-settle-1.lua");

/// A bucket stands alone too.
pub(crate) const BUCKET: &str = include_str!("../../lua/bucket-1.lua");

/// All scripts of the limiter.
#[derive(Debug)]
pub(crate) struct Scripts {
    pub(crate) reserve: Script,
    pub(crate) settle: Script,
    pub(crate) pause: Script,
    pub(crate) limits: Script,
    pub(crate) inspect: Script,
    pub(crate) renew: Script,
}

impl Scripts {
    pub(crate) fn new() -> Self {
        Self {
            reserve: Script::new(RESERVE),
            settle: Script::new(SETTLE),
            pause: Script::new(PAUSE),
            limits: Script::new(LIMITS),
            inspect: Script::new(INSPECT),
            renew: Script::new(RENEW),
        }
    }
}

impl Script {
    pub(crate) fn new(text: &'static str) -> Self {
        let text = fold(text);
        Self { hash: redis::Script::new(&text).get_hash().to_owned(), text }
    }

    /// One round trip; two when the server has lost its scripts. `EVAL` and not `SCRIPT LOAD`,
    /// which some proxies block.
    pub(crate) async fn run(
        &self,
        connection: &mut impl ConnectionLike,
        keys: &[String],
        arguments: &[Vec<u8>],
    ) -> RedisResult<Vec<Value>> {
        match self.command("EVALSHA", &self.hash, keys, arguments).query_async(connection).await {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                self.command("EVAL", &self.text, keys, arguments).query_async(connection).await
            }
            answer => answer,
        }
    }

    fn command(
        &self,
        verb: &str,
        body: &str,
        keys: &[String],
        arguments: &[Vec<u8>],
    ) -> redis::Cmd {
        let mut command = redis::cmd(verb);
        command.arg(body).arg(keys.len()).arg(keys).arg(arguments);
        command
    }
}

/// Writes the value of each constant where its name stands, and drops its line.
///
/// The text as joined means the same. But a script's functions are made anew at every call, and
/// binding the names that each of them uses took 5 of 10 microseconds before the first line of
/// work.
fn fold(text: &str) -> String {
    let mut constants = HashMap::new();
    let mut lines = Vec::new();
    for line in text.lines() {
        match constants_of(line) {
            Some(found) => constants.extend(found),
            None => lines.push(line),
        }
    }
    let is_name = |c: char| c.is_ascii_uppercase() || c == '_';
    let mut folded = String::with_capacity(text.len());
    for line in lines {
        let mut rest = line;
        while let Some(start) = rest.find(is_name) {
            let end =
                rest[start..].find(|c| !is_name(c)).map_or(rest.len(), |length| start + length);
            folded.push_str(&rest[..start]);
            folded.push_str(
                constants.get(&rest[start..end]).copied().unwrap_or_else(|| &rest[start..end]),
            );
            rest = &rest[end..];
        }
        folded.push_str(rest);
        folded.push('\n');
    }
    folded
}

/// The names and values of a line such as `local LOOK, WALK = 32, 48`.
fn constants_of(line: &str) -> Option<Vec<(&str, &str)>> {
    let (names, values) = line.strip_prefix("local ")?.split_once(" = ")?;
    let pairs: Vec<_> = names.split(", ").zip(values.split(", ")).collect();
    let constant = |name: &str, value: &str| {
        name.chars().all(|c| c.is_ascii_uppercase() || c == '_')
            && value.chars().all(|c| c.is_ascii_digit() || c == '.')
    };
    pairs.iter().all(|(name, value)| constant(name, value)).then_some(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_folded_and_words_in_the_text_are_not() {
        let text =
            "local LOOK, WALK = 32, 0.5\nlocal name = LOOK\nredis.call('HMGET', LOOK, WALKED)\n";
        assert_eq!(fold(text), "local name = 32\nredis.call('HMGET', 32, WALKED)\n");
    }

    #[test]
    fn no_constant_has_the_name_of_a_command_or_is_set_twice() {
        for script in
            [RESERVE, SETTLE, PAUSE, LIMITS, INSPECT, RENEW, BUDGET_RESERVE, BUDGET_SETTLE, BUCKET]
        {
            let mut names = std::collections::HashSet::new();
            for (name, _) in script.lines().filter_map(constants_of).flatten() {
                assert!(names.insert(name), "{name} is set twice");
                assert!(!script.contains(&format!("'{name}'")), "{name} is also a word in quotes");
            }
        }
    }
}
