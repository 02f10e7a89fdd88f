//! What people meet of a field of the input: how it is given on the command line, and what the help
//! and the reference page say of it.

/// One field.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// As in the input; `field.part` for a part of a field that has a flag of its own.
    pub name: &'static str,
    /// What it is unless it is given, in words.
    pub default: &'static str,
    /// What it means, as the reference page says it; empty for what another row tells.
    pub meaning: &'static str,
    /// How it is given on the command line, if it is.
    pub flag: Option<Flag>,
}

/// How a field is given on the command line.
#[derive(Debug, Clone, Copy)]
pub struct Flag {
    /// Its name, where it is not the field's.
    pub long: Option<&'static str>,
    /// The letter that stands for it.
    pub short: Option<char>,
    /// What is given.
    pub takes: Takes,
    /// The same in the help.
    pub value: &'static str,
    /// What the help says of it.
    pub help: &'static str,
    /// It must be given unless one of these fields is.
    pub required_unless: Option<&'static [&'static str]>,
    /// It is of no use without this field.
    pub requires: Option<&'static str>,
    /// It excludes this field.
    pub excludes: Option<&'static str>,
}

/// Required, whatever else is given.
pub(super) const ALWAYS: &[&str] = &[];

/// What a flag takes.
#[derive(Debug, Clone, Copy)]
pub enum Takes {
    /// Nothing: where it stands, the field is true.
    Nothing,
    /// Where documents are: a URI, or a path. It has no name before it.
    Documents,
    /// A file, by its URI or its path.
    Source,
    /// Where results go: a URI, or a path.
    Results,
    /// A text, or `@` and the file that holds it.
    Text,
    /// The same, where an empty one is none.
    Instructions,
    /// A text as it is; says why one is not usable.
    Word(fn(&str) -> Result<(), String>),
    /// A whole number below 2³².
    Number,
    /// A whole number below 2⁶⁴.
    LargeNumber,
    /// US dollars above 0.
    Dollars,
    /// How many, or nothing, which is true.
    NumberOrNothing,
    /// A file with a list of turns.
    Turns,
    /// A file with a JSON list.
    List,
    /// A file with a JSON object.
    Schema,
    /// A JSON object, or `@` and the file that holds it.
    Object,
}

impl Field {
    pub(super) const fn new(
        name: &'static str,
        default: &'static str,
        meaning: &'static str,
    ) -> Self {
        Self { name, default, meaning, flag: None }
    }

    pub(super) const fn flag(self, flag: Flag) -> Self {
        Self { flag: Some(flag), ..self }
    }
}

impl Flag {
    pub(super) const fn new(takes: Takes, value: &'static str, help: &'static str) -> Self {
        Self {
            long: None,
            short: None,
            takes,
            value,
            help,
            required_unless: None,
            requires: None,
            excludes: None,
        }
    }

    pub(super) const fn long(self, name: &'static str) -> Self {
        Self { long: Some(name), ..self }
    }

    pub(super) const fn short(self, letter: char) -> Self {
        Self { short: Some(letter), ..self }
    }

    pub(super) const fn required_unless(self, others: &'static [&'static str]) -> Self {
        Self { required_unless: Some(others), ..self }
    }

    pub(super) const fn requires(self, other: &'static str) -> Self {
        Self { requires: Some(other), ..self }
    }

    pub(super) const fn excludes(self, other: &'static str) -> Self {
        Self { excludes: Some(other), ..self }
    }
}
