//! The user's view of an input field: its command-line flag, its help, and its row of the reference
//! page.

/// One field.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// Its name in the input; `field.part` for a part of a field that has its own flag.
    pub name: &'static str,
    /// Its default, in words.
    pub default: &'static str,
    /// Its meaning on the reference page; empty if another row explains it.
    pub meaning: &'static str,
    /// Its command-line flag, if there is one.
    pub flag: Option<Flag>,
}

/// A field's command-line flag.
#[derive(Debug, Clone, Copy)]
pub struct Flag {
    /// The flag's name, if it differs from the field's.
    pub long: Option<&'static str>,
    /// The flag's letter.
    pub short: Option<char>,
    /// The value that it takes.
    pub takes: Takes,
    /// The value's name in the help.
    pub value: &'static str,
    /// The help text.
    pub help: &'static str,
    /// Required, unless one of these fields is given.
    pub required_unless: Option<&'static [&'static str]>,
    /// Allowed only together with this field.
    pub requires: Option<&'static str>,
    /// Not allowed together with this field.
    pub excludes: Option<&'static str>,
}

/// Required, with any other fields.
pub(super) const ALWAYS: &[&str] = &[];

/// The value that a flag takes.
#[derive(Debug, Clone, Copy)]
pub enum Takes {
    /// No value: the flag sets the field to true.
    Nothing,
    /// The documents: a URI or a path, without a flag's name before it.
    Documents,
    /// A file: a URI or a path.
    Source,
    /// The place for results: a URI or a path.
    Results,
    /// A text, or `@` and the name of a file with it.
    Text,
    /// Like `Text`, but an empty text counts as absent.
    Instructions,
    /// A plain text; the function returns the fault of an invalid one.
    Word(fn(&str) -> Result<(), String>),
    /// A whole number below 2³².
    Number,
    /// A whole number below 2⁶⁴.
    LargeNumber,
    /// US dollars above 0.
    Dollars,
    /// A number, or no value, which means true.
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
