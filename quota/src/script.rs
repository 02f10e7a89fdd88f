//! The Lua scripts. Each names the parts that it needs in lines such as
//! `--- @include "include/state"`. Its text is these parts in that order, and then its own file.

use std::collections::{HashMap, HashSet};

use redis::Cmd;
use tidegate_lua::PARTS;

macro_rules! scripts {
    ($($field:ident: $text:ident),+ $(,)?) => {
        /// Every script.
        #[derive(Debug)]
        pub(crate) struct Scripts {
            $(pub(crate) $field: Script),+
        }

        impl Scripts {
            pub(crate) fn new() -> Self {
                Self { $($field: Script::new(tidegate_lua::$text)),+ }
            }
        }
    };
}

scripts! {
    reserve: RESERVE,
    settle: SETTLE,
    pause: PAUSE,
    plan: PLAN,
    inspect: INSPECT,
    leave: LEAVE,
    lanes: LANES,
    renew: RENEW,
    beat: BEAT,
    workers: WORKERS,
    retries: RETRIES,
    history: HISTORY,
    enqueue: ENQUEUE,
    budget_reserve: BUDGET_RESERVE,
    budget_settle: BUDGET_SETTLE,
    budget_open: BUDGET_OPEN,
    budget_checkpoint: BUDGET_CHECKPOINT,
    bucket: BUCKET,
    turns: TURNS,
}

/// A script, run by its hash. Its text is sent if the server does not have it.
#[derive(Debug)]
pub(crate) struct Script {
    text: String,
    hash: String,
}

impl Script {
    fn new(file: &str) -> Self {
        let text = fold(&join(file));
        Self { hash: redis::Script::new(&text).get_hash().to_owned(), text }
    }

    /// The command that runs it by its hash.
    pub(crate) fn by_hash(&self, keys: &[String], arguments: &[Vec<u8>]) -> Cmd {
        self.command("EVALSHA", &self.hash, keys, arguments)
    }

    /// The command that sends its text and runs it. `EVAL` and not `SCRIPT LOAD`, which some
    /// proxies block.
    pub(crate) fn by_text(&self, keys: &[String], arguments: &[Vec<u8>]) -> Cmd {
        self.command("EVAL", &self.text, keys, arguments)
    }

    fn command(&self, verb: &str, body: &str, keys: &[String], arguments: &[Vec<u8>]) -> Cmd {
        let mut command = redis::cmd(verb);
        command.arg(body).arg(keys.len()).arg(keys).arg(arguments);
        command
    }
}

/// A script's text: its parts, then its file.
fn join(file: &str) -> String {
    let named = file.lines().filter_map(included);
    let parts = named.filter_map(|name| PARTS.iter().find(|(part, _)| *part == name));
    parts.map(|(_, text)| *text).chain([file]).collect()
}

/// The part that a line names, if it names one.
fn included(line: &str) -> Option<&str> {
    line.strip_prefix("--- @include \"")?.strip_suffix('"')
}

/// Replaces each constant's name by its value, drops the constants' lines and the comments, and
/// keeps the functions in one table.
///
/// The joined text does the same. But Redis makes a script's functions anew at every call, and
/// binding the names that each of them uses took half of the time before the first line of work. A
/// function of the table binds one name. Functions before the first statement are made in the
/// table's constructor, which knows its size: growing the table was a fifth of that time.
fn fold(text: &str) -> String {
    let mut constants = HashMap::new();
    let mut lines = Vec::new();
    for line in code(text) {
        match constants_of(line) {
            Some(found) => constants.extend(found),
            None => lines.push(line),
        }
    }
    let functions: HashSet<&str> = lines.iter().filter_map(|line| function_of(line)).collect();
    let mut folded = String::with_capacity(text.len());
    folded.push_str("local F\nF = {\n");
    let (mut constructs, mut inside) = (true, false);
    for (index, line) in lines.iter().enumerate() {
        let made = function_of(line);
        if constructs && !inside && made.is_none() {
            for later in lines[index..].iter().filter_map(|line| function_of(line)) {
                folded.push_str(later);
                folded.push_str(" = false,\n");
            }
            folded.push_str("}\n");
            constructs = false;
        }
        let mut line = *line;
        if let Some(name) = made {
            inside = true;
            if constructs {
                folded.push_str(name);
                folded.push_str(" = function");
                line = line.trim_start_matches("local function ").trim_start_matches(name);
            } else {
                line = line.trim_start_matches("local ");
            }
        }
        for (before, word) in words(line) {
            match constants.get(word) {
                Some(value) => folded.push_str(value),
                None if functions.contains(word) && !before.ends_with('.') => {
                    folded.push_str("F.");
                    folded.push_str(word);
                }
                None => folded.push_str(word),
            }
        }
        if line == "end" && inside {
            inside = false;
            folded.push_str(if constructs { "," } else { "" });
        }
        folded.push('\n');
    }
    if constructs {
        folded.push_str("}\n");
    }
    folded
}

/// The lines that are neither empty nor comments.
fn code(text: &str) -> impl Iterator<Item = &str> {
    let mut block = false;
    text.lines().filter(move |line| {
        let line = line.trim_start();
        let began = block || line.starts_with("--[[");
        block = began && !line.ends_with("]]");
        !began && !line.is_empty() && !line.starts_with("--")
    })
}

/// Splits a line into words and the texts between them (quoted text too). Each piece comes with
/// everything before it.
fn words(line: &str) -> impl Iterator<Item = (&str, &str)> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut start = 0;
    std::iter::from_fn(move || {
        let rest = line.get(start..).filter(|rest| !rest.is_empty())?;
        let length = match rest.chars().next()? {
            '\'' => rest[1..].find('\'').map_or(rest.len(), |end| end + 2),
            first if is_word(first) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            _ => rest.find(|c| is_word(c) || c == '\'').unwrap_or(rest.len()),
        };
        let piece = (&line[..start], &rest[..length]);
        start += length;
        Some(piece)
    })
}

/// The name of the function that this line begins.
fn function_of(line: &str) -> Option<&str> {
    line.strip_prefix("local function ")?.split('(').next()
}

/// The names and values of a line such as `local LOOK, WALK = 32, 48` or `local FORMAT = '<dd'`.
fn constants_of(line: &str) -> Option<Vec<(&str, &str)>> {
    let (names, values) = line.trim_start().strip_prefix("local ")?.split_once(" = ")?;
    let pairs: Vec<_> = names.split(", ").zip(values.split(", ")).collect();
    let constant = |name: &str, value: &str| {
        name.chars().all(|c| c.is_ascii_uppercase() || c == '_')
            && (value.chars().all(|c| c.is_ascii_digit() || c == '.') || is_quoted(value))
    };
    pairs.iter().all(|(name, value)| constant(name, value)).then_some(pairs)
}

fn is_quoted(value: &str) -> bool {
    let inner = value.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    inner.is_some_and(|inner| !inner.contains('\''))
}

#[cfg(test)]
mod tests {
    use tidegate_lua::SCRIPTS;

    use super::*;

    #[test]
    fn constants_and_functions_are_folded_and_words_in_the_text_are_not() {
        let text = "--[[ looks\n  WALK\n]]\n\
                    local LOOK, WALK, FORM = 32, 0.5, '<d'\n\
                    -- look\n\
                    local function look(far)\n\
                    \x20 return walk(FORM)\n\
                    end\n\
                    local name = LOOK\n\
                    local function walk()\n\
                    end\n\
                    redis.call('HMGET', look(LOOK), WALKED, 'look at', a.look)\n";
        assert_eq!(
            fold(text),
            "local F\n\
             F = {\n\
             look = function(far)\n\
             \x20 return F.walk('<d')\n\
             end,\n\
             walk = false,\n\
             }\n\
             local name = 32\n\
             function F.walk()\n\
             end\n\
             redis.call('HMGET', F.look(32), WALKED, 'look at', a.look)\n"
        );
    }

    #[test]
    fn no_variable_has_the_name_of_a_function() {
        for (script, file) in SCRIPTS {
            let text = join(file);
            let code = || text.lines().filter(|line| !line.trim_start().starts_with("--"));
            let functions: HashSet<&str> = code().filter_map(function_of).collect();
            for line in code() {
                let declares = line.trim_start();
                let declared = match (function_of(line), declares.split_once("local ")) {
                    (Some(name), _) => &declares[declares.find(name).unwrap() + name.len()..],
                    (None, Some((_, rest))) => rest.split(" = ").next().unwrap(),
                    (None, None) if declares.starts_with("for ") => {
                        declares.split(" in ").next().unwrap().split(" = ").next().unwrap()
                    }
                    _ => continue,
                };
                for (_, word) in words(declared) {
                    assert!(!functions.contains(word), "{script}: {word} in {line:?}");
                }
            }
        }
    }

    #[test]
    fn no_constant_has_two_values() {
        for (script, file) in SCRIPTS {
            let text = join(file);
            let mut values = HashMap::new();
            for (name, value) in text.lines().filter_map(constants_of).flatten() {
                let other = values.insert(name, value).unwrap_or(value);
                assert_eq!(other, value, "{script}: {name}");
            }
        }
    }

    #[test]
    fn every_part_that_a_script_names_is_there_and_is_named_once() {
        for (script, file) in SCRIPTS {
            let named: Vec<&str> = file.lines().filter_map(included).collect();
            for (index, name) in named.iter().enumerate() {
                assert!(PARTS.iter().any(|(part, _)| part == name), "{script} names {name}");
                assert!(!named[..index].contains(name), "{script} names {name} twice");
            }
            let lines = file.lines().filter(|line| line.contains("@include")).count();
            assert_eq!(named.len(), lines, "{script}: a line that names a part is misspelt");
        }
        for (part, file) in PARTS {
            assert!(!file.contains("@include"), "{part} names further parts");
            assert!(
                SCRIPTS
                    .iter()
                    .any(|(_, file)| file.lines().filter_map(included).any(|name| name == *part)),
                "no script names {part}"
            );
        }
    }

    #[test]
    fn no_constant_has_the_name_of_a_command_or_is_set_twice() {
        for (_, file) in SCRIPTS {
            let script = join(file);
            let mut names = std::collections::HashSet::new();
            for (name, _) in script.lines().filter_map(constants_of).flatten() {
                assert!(names.insert(name), "{name} is set twice");
                assert!(!script.contains(&format!("'{name}'")), "{name} is also a word in quotes");
            }
        }
    }
}
