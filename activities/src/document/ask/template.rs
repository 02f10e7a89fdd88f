//! Templates: texts in which `{{ … }}` stands for facts of a document.
//!
//! They are strict: an unknown name is a fault, not an empty text. Their steps (fuel) and their output
//! are bounded; the size of a value is bounded only if the text [is plain](is_plain).

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
    io,
};

use minijinja::{
    Environment, Error, ErrorKind, Template, UndefinedBehavior, Value, syntax::SyntaxConfig,
};

/// Steps of one text: some thousand iterations of a loop.
const FUEL: u64 = 50_000;

/// Texts take fuel by their length: one step for 64 bytes, and more where they are filtered.
const BYTES_OF_FUEL: usize = 16;

/// Longest text, in bytes. Nested syntax is parsed by recursion: some kilobytes of stack for each byte
/// at worst.
const MAX_TEXT: usize = 64 << 10;

/// Stack for the deepest nesting of such a text; the operating system provides only the part in
/// use.
const STACK: usize = 512 << 20;

/// Bytes by which a text may exceed everything that it can name together.
const SPARE_BYTES: usize = 1 << 20;

/// Maximum bytes in the tags of a plain text.
const MAX_PLAIN: usize = 4 << 10;

/// Words that begin a plain text's statements.
const PLAIN_STATEMENTS: [&str; 4] = ["if", "elif", "else", "endif"];

/// Filters whose output is no longer than their input, or than a literal in the text.
const PLAIN_FILTERS: [&str; 12] = [
    "abs",
    "capitalize",
    "d",
    "default",
    "float",
    "int",
    "length",
    "lower",
    "round",
    "title",
    "trim",
    "upper",
];

/// Values of templates by their names.
pub(crate) type Variables<'a> = BTreeMap<&'a str, Value>;

/// A text with variables in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Text<'a> {
    /// The field of the author's input, such as `instructions`.
    pub(crate) place: &'a str,
    pub(crate) text: &'a str,
}

impl Text<'_> {
    /// Returns the names that the text uses, apart from those that it defines.
    ///
    /// # Errors
    /// A sentence that names the place of a syntax error.
    pub(crate) fn names(self) -> Result<BTreeSet<String>, String> {
        self.run_deep(|| self.names_here())
    }

    fn names_here(&self) -> Result<BTreeSet<String>, String> {
        let engine = engine(0);
        let template = self.read(&engine)?;
        let mut names: BTreeSet<String> =
            template.undeclared_variables(false).into_iter().collect();
        engine.globals().for_each(|(known, _)| {
            names.remove(known);
        });
        Ok(names)
    }

    /// Fills in the values of the names.
    ///
    /// # Errors
    /// A sentence that states the fault and its line.
    pub(crate) fn fill(self, with: &Variables<'_>) -> Result<String, String> {
        self.run_deep(|| self.fill_here(with))
    }

    /// Runs the work on a thread whose stack suffices for this text's nesting.
    fn run_deep<T: Send>(
        &self,
        work: impl FnOnce() -> Result<T, String> + Send,
    ) -> Result<T, String> {
        if self.text.len() > MAX_TEXT {
            let (place, size, most) = (self.place, self.text.len(), MAX_TEXT);
            return Err(format!("{place}: a template of {size} bytes; at most {most} are read"));
        }
        if self.text.contains('{') { run_deep(self.place, work) } else { work() }
    }

    fn fill_here(&self, with: &Variables<'_>) -> Result<String, String> {
        let room = max_output_bytes(self.text, with);
        let engine = engine(room);
        let template = self.read(&engine)?;
        let mut written = Bounded { text: Vec::new(), room };
        let values = Value::from_pairs(with.iter().map(|(name, value)| (*name, value.clone())));
        let rendered = template.render_captured_to(values, &mut written);
        rendered.map_err(|error| fault(self.place, &error, with))?;
        String::from_utf8(written.text).map_err(|_| format!("{} is no text", self.place))
    }

    fn read<'t>(&'t self, engine: &'t Environment<'t>) -> Result<Template<'t, 't>, String> {
        engine
            .template_from_named_str(self.place, self.text)
            .map_err(|error| fault(self.place, &error, &Variables::new()))
    }
}

thread_local! {
    /// Whether this thread's stack suffices for any nesting.
    static IS_DEEP: Cell<bool> = const { Cell::new(false) };
}

/// Runs the work on a thread whose stack suffices for any nesting. Work within such work takes no
/// other thread.
pub(super) fn run_deep<T: Send>(
    place: &str,
    work: impl FnOnce() -> Result<T, String> + Send,
) -> Result<T, String> {
    if IS_DEEP.get() {
        return work();
    }
    let work = || {
        IS_DEEP.set(true);
        work()
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
        let thread = thread.map_err(|error| format!("{place}: no thread for it: {error}"))?;
        thread.join().unwrap_or_else(|_| Err(format!("{place}: it cannot be read")))
    })
}

/// Maximum bytes that a text may put out: twice the bytes of everything that it can name, and
/// [`SPARE_BYTES`].
pub(super) fn max_output_bytes(text: &str, with: &Variables<'_>) -> usize {
    let texts = with.values().filter_map(|value| value.as_str()).map(str::len);
    text.len() + 2 * texts.sum::<usize>() + SPARE_BYTES
}

/// Describes an error in the text at this place, where these names are known.
pub(super) fn fault(place: &str, error: &Error, known: &Variables<'_>) -> String {
    let line = error.line().map_or_else(String::new, |line| format!(", line {line}"));
    let what = match error.kind() {
        ErrorKind::UndefinedError => {
            let known: Vec<&str> = known.keys().copied().collect();
            format!("a name is not known; known: {}", known.join(", "))
        }
        ErrorKind::OutOfFuel => "the template takes too many steps".to_owned(),
        ErrorKind::WriteFailure => "the template puts out too much text".to_owned(),
        kind => match error.detail() {
            Some(detail) => format!("{kind}: {detail}"),
            None => kind.to_string(),
        },
    };
    format!("{place}{line}: {what}")
}

/// Whether no value of a text can be much longer than the values that it is filled with: it has
/// only names, their fields, comparisons, `if`, and filters that lengthen nothing.
pub(crate) fn is_plain(text: &str) -> bool {
    let (mut rest, mut bytes) = (text, 0);
    while let Some(begin) = ["{{", "{%", "{#"].iter().filter_map(|tag| rest.find(tag)).min() {
        let Some((tag, behind)) = split_tag(&rest[begin..]) else { return false };
        bytes += tag.len();
        if bytes > MAX_PLAIN || !is_plain_tag(tag) {
            return false;
        }
        rest = behind;
    }
    true
}

/// The content of a tag, its first sign included, and the text after it.
fn split_tag(text: &str) -> Option<(&str, &str)> {
    let (mut quote, mut before) = (None, ' ');
    for (at, sign) in text.char_indices().skip(2) {
        match quote {
            Some(mark) if sign == mark => quote = None,
            Some(_) if sign == '\\' => return None,
            Some(_) => {}
            None if sign == '}' && matches!(before, '}' | '%' | '#') => {
                return Some((&text[1..at - 1], &text[at + 1..]));
            }
            None if matches!(sign, '"' | '\'') => quote = Some(sign),
            None => {}
        }
        before = sign;
    }
    None
}

pub(super) fn is_plain_tag(tag: &str) -> bool {
    let (kind, inside) = tag.split_at(1);
    let inside = inside.trim_matches(['-', '+']).trim();
    // Quoted words are values.
    let words = inside.split(['"', '\'']).step_by(2);
    let statement = inside.split_whitespace().next().unwrap_or_default();
    let is_known = kind == "{" || kind == "%" && PLAIN_STATEMENTS.contains(&statement);
    let signs = |words: &str| {
        words.chars().all(|sign| {
            sign.is_alphanumeric() || sign.is_whitespace() || "_.()|=!<>".contains(sign)
        })
    };
    let mut filters = inside.split('|').skip(1).map(|filter| {
        let filter = filter.trim_start();
        filter.split(|sign: char| !sign.is_alphanumeric() && sign != '_').next()
    });
    is_known
        && words.into_iter().all(signs)
        && filters.all(|filter| filter.is_some_and(|it| PLAIN_FILTERS.contains(&it)))
}

/// The template engine for a text of this many bytes.
pub(super) fn engine<'t>(bytes: usize) -> Environment<'t> {
    let mut syntax = SyntaxConfig::builder();
    syntax.keep_trailing_newline(true);
    let mut engine = Environment::new();
    engine.set_undefined_behavior(UndefinedBehavior::Strict);
    // A namespace can contain itself, and printing it would never end.
    engine.remove_global("namespace");
    engine.set_fuel(Some(FUEL + (bytes / BYTES_OF_FUEL) as u64));
    if let Ok(syntax) = syntax.build() {
        engine.set_syntax(syntax);
    }
    // The output is not HTML, even if the template's name ends in `.html`.
    engine.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    engine
}

/// A writer of bounded length.
struct Bounded {
    text: Vec<u8>,
    room: usize,
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.text.len() + bytes.len() > self.room {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Variable that holds all cells of a row by their columns, for columns whose names cannot be
/// written in a template: `{{ row["Company name"] }}`. A column of this name takes precedence.
const ROW: &str = "row";

/// The prompt's place, for messages.
const PLACE: &str = "--prompt";

/// A text in which `{{ column }}` stands for a row's cell.
#[derive(Debug, Clone)]
pub struct RowPrompt(String);

impl RowPrompt {
    /// Checks a prompt for the rows of a table with these columns.
    ///
    /// # Errors
    /// A sentence that names the place of a syntax error, or the name that is not a column.
    pub fn new(text: String, columns: &[&str]) -> Result<Self, String> {
        let names = Text { place: PLACE, text: &text }.names()?;
        let all = || columns.join(", ");
        if let Some(name) =
            names.iter().find(|name| *name != ROW && !columns.contains(&name.as_str()))
        {
            return Err(format!("{PLACE}: there is no column \"{name}\"; the columns: {}", all()));
        }
        if names.is_empty() {
            return Err(format!(
                "{PLACE} names no column, and each row would be asked the same; write {{{{ column }}}}; the columns: {}",
                all()
            ));
        }
        Ok(Self(text))
    }

    /// Fills in these cells, by their columns.
    ///
    /// # Errors
    /// A sentence that states the fault and its line.
    pub fn fill<'a>(
        &self,
        cells: impl Iterator<Item = (&'a str, &'a str)> + Clone,
    ) -> Result<String, String> {
        let mut variables = Variables::from([(ROW, Value::from_pairs(cells.clone()))]);
        variables.extend(cells.map(|(column, cell)| (column, Value::from(cell))));
        Text { place: PLACE, text: &self.0 }.fill(&variables)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use super::*;

    fn fill(text: &str) -> Result<String, String> {
        let with = BTreeMap::from([("id", Value::from("a-1")), ("amount", Value::from(7))]);
        Text { place: "instructions", text }.fill(&with)
    }

    #[test]
    fn names_are_filled_in_and_nothing_is_escaped() {
        assert_eq!(fill("{{ id }}: <{{ amount }}>\n").unwrap(), "a-1: <7>\n");
        assert_eq!(fill("{% if total is defined %}{{ total }}{% endif %}-").unwrap(), "-");
        let names = |text| Text { place: "x", text }.names().unwrap();
        let text = "{% for n in range(amount) %}{{ n }}{{ id }}{% endfor %}";
        assert_eq!(names(text).into_iter().collect::<Vec<_>>(), ["amount", "id"]);
    }

    #[test]
    fn faults_say_where() {
        let unknown = fill("Of {{ id }}:\n{{ total }}").unwrap_err();
        assert_eq!(unknown, "instructions, line 2: a name is not known; known: amount, id");
        let syntax = fill("{{ id").unwrap_err();
        assert!(syntax.starts_with("instructions, line 1: syntax error"), "{syntax}");
    }

    #[test]
    fn work_within_deep_work_takes_no_other_thread() {
        let thread = || Ok(std::thread::current().id());
        let both = || Ok((thread()?, run_deep("x", || run_deep("x", thread))?));
        let (outer, inner) = run_deep("x", both).unwrap();
        assert!(outer == inner && outer != std::thread::current().id());
        assert!(!IS_DEEP.get());
        let fails = run_deep::<()>("x", || run_deep("y", || panic!("a fault of the engine")));
        assert_eq!(fails.unwrap_err(), "x: it cannot be read");
    }

    #[test]
    fn what_nests_deeply_or_holds_itself_is_put_out_or_refused() {
        let itself = fill("{% set n = namespace() %}{% set n.x = n %}{{ n }}").unwrap_err();
        assert!(itself.contains("namespace"), "{itself}");
        for (before, link, behind) in [
            ("{{ id", ".x", " }}"),
            ("{{ ", "not ", "id }}"),
            ("{{ id", "~'a'", " }}"),
            ("{{ 1", "|string", " }}"),
            ("{{ ", "(", "id }}"),
        ] {
            // A quarter of the longest text: a build without optimisation takes seconds for more.
            let most = MAX_TEXT / 4 - before.len() - behind.len();
            let chain = format!("{before}{}{behind}", link.repeat(most / link.len()));
            let outcome = fill(&chain);
            assert_eq!(
                outcome.is_err(),
                matches!(link, ".x" | "~'a'" | "("),
                "{link}: {outcome:?}"
            );
            let longer = fill(&format!("{chain}{}", " ".repeat(MAX_TEXT))).unwrap_err();
            assert!(longer.contains("at most 65536"), "{longer}");
        }
    }

    #[test]
    fn what_cannot_grow_is_plain() {
        for plain in [
            "no tag { at } all",
            "{{ id }}, {{- name -}} {{ city.name|trim|upper }}",
            "{% if total is defined and total > 3 %}{{ total }}{% else %}none{% endif %}",
            "{{ title|default('}} ~ %}') }}",
        ] {
            assert!(is_plain(plain), "{plain}");
            Text { place: "x", text: plain }.names().unwrap();
        }
        for other in [
            "{% set x = [id, id] %}",
            "{% for a in b %}{{ a }}{% endfor %}",
            "{{ id ~ id }}",
            "{{ id * 9 }}",
            "{{ id|replace('a', id) }}",
            "{{ (id, id) }}",
            "{{ [id] }}",
            "{{ '\"' ~ '}}' ~ id ~ \"'\" }}",
            "{{ \"\\\"}}\" ~ id }}",
            "{{ id",
            "{# nothing #}",
            &"{{ id|trim }}".repeat(500),
        ] {
            assert!(!is_plain(other), "{other}");
        }
    }

    #[test]
    fn work_and_output_are_bounded() {
        let ever = "{% for a in range(9999) %}{% for b in range(9999) %}x{% endfor %}{% endfor %}";
        assert!(fill(ever).unwrap_err().ends_with("too many steps"));
        let with = BTreeMap::from([("document", Value::from("x".repeat(4 << 20)))]);
        let much = "{% for a in range(99) %}{{ document }}{% endfor %}";
        let fault = Text { place: "instructions", text: much }.fill(&with).unwrap_err();
        assert!(fault.ends_with("too much text"), "{fault}");
    }
}

#[cfg(test)]
mod row_tests {
    use super::*;

    const COLUMNS: [&str; 2] = ["city", "Company name"];

    fn fill(text: &str) -> Result<String, String> {
        let cells = COLUMNS.into_iter().zip(["Husum", "a, \"b\""]);
        RowPrompt::new(text.to_owned(), &COLUMNS)?.fill(cells)
    }

    #[test]
    fn cells_stand_where_their_columns_are_named() {
        let text = "{{ city|upper }}: {{ row[\"Company name\"] }}";
        assert_eq!(fill(text).unwrap(), "HUSUM: a, \"b\"");
    }

    #[test]
    fn a_name_that_is_no_column_is_refused_before_a_row_is_read() {
        let unknown = fill("{{ town }}").unwrap_err();
        assert_eq!(
            unknown,
            "--prompt: there is no column \"town\"; the columns: city, Company name"
        );
        assert!(fill("Sum up.").unwrap_err().contains("names no column"));
        assert!(fill("{{ city").unwrap_err().contains("line 1: syntax error"));
        assert!(fill("{{ row.town }}").unwrap_err().contains("not known"));
    }
}
