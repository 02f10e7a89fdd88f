//! The text of a document's prompt: the system prompt, the turns before, and the text around the
//! document in its own turn.

use std::borrow::Cow;

use minijinja::{Value, value::Serde};
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};
use serde_json::Map;
use tidegate_documents::tokens;
use tidegate_providers::{Role, Said, Turn, prompt};
use tidegate_workflows::contract::{self, Job};

use crate::{
    document::ask::template::{self, Text, Variables},
    output::job::Document,
};

/// Variables of templates that every document has.
pub(crate) const OF_ALL: [&str; 3] = ["document", "id", "name"];

/// Facts of a document for templates.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct DocumentFacts<'a> {
    pub(crate) id: Cow<'a, str>,
    /// The name of its file.
    pub(crate) name: Cow<'a, str>,
    /// The fields of a record.
    pub(crate) fields: Cow<'a, Map<String, serde_json::Value>>,
    /// The text that is sent.
    pub(crate) text: Cow<'a, str>,
}

impl<'a> DocumentFacts<'a> {
    /// The facts of a document of which this text is sent.
    pub(crate) fn new(document: &'a Document, text: &'a str) -> Self {
        let Document { id, uri, fields, .. } = document;
        let (file, member) = uri.split_once('#').unwrap_or((uri, ""));
        // After the `#` is a record's number, or a name within an archive.
        let is_record = document.text.is_some() || !fields.is_empty();
        let path = if member.is_empty() || is_record { file } else { member };
        // The last name counts in an archive within an archive; a second file of one path has a number
        // before it.
        let path = path.rsplit('#').next().unwrap_or_default();
        let path = percent_decode_str(path).decode_utf8_lossy();
        let name = Cow::Owned(path.rsplit('/').next().unwrap_or_default().to_owned());
        Self { id: id.as_str().into(), name, fields: Cow::Borrowed(fields), text: text.into() }
    }

    /// The variables of templates.
    pub(super) fn variables(&self) -> Variables<'_> {
        let fields = self.fields.iter();
        let mut variables: Variables<'_> =
            fields.map(|(name, value)| (name.as_str(), Value::from(Serde(value)))).collect();
        for (name, value) in OF_ALL.into_iter().zip([&self.text, &self.id, &self.name]) {
            variables.insert(name, Value::from(value.as_ref()));
        }
        variables
    }
}

/// The text of one call's prompt.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PromptText<'a> {
    pub(crate) system: Cow<'a, str>,
    pub(crate) turns: Vec<Turn>,
    /// Position of the instructions, and so of an added note.
    pub(crate) place: InstructionsPosition,
    pub(crate) instructions: Cow<'a, str>,
    /// Whether the system prompt is equal for all documents.
    pub(crate) is_shared: bool,
}

/// Position of the instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum InstructionsPosition {
    /// They are the system prompt.
    System,
    /// In a turn before the document.
    Before,
    /// In the document's turn. The document is within the instructions or in a turn before.
    Around,
}

impl<'a> PromptText<'a> {
    /// Builds the text about one document.
    ///
    /// # Errors
    /// A sentence that names the place of the template's fault.
    pub(crate) fn build(job: &'a Job, about: &DocumentFacts<'_>) -> Result<Self, String> {
        // One thread for all texts of the prompt.
        match job.template && texts(job).iter().any(|(_, text)| text.contains('{')) {
            true => template::run_deep("the templates", || Self::build_here(job, about)),
            false => Self::build_here(job, about),
        }
    }

    fn build_here(job: &'a Job, about: &DocumentFacts<'_>) -> Result<Self, String> {
        let place = place(job)?;
        let variables = if job.template { about.variables() } else { Variables::new() };
        let fill = |place: &str, text: &'a str| -> Result<Cow<'a, str>, String> {
            if job.template {
                return Text { place, text }.fill(&variables).map(Cow::Owned);
            }
            Ok(Cow::Borrowed(text))
        };
        let system = job.system.as_deref().map(|text| fill("system", text)).transpose()?;
        let mut turns = Vec::with_capacity(job.messages.len() + 2 * job.shown.len());
        for (number, shown) in job.shown.iter().enumerate() {
            turns.extend(example(job, place, number, shown)?);
        }
        for (number, message) in job.messages.iter().enumerate() {
            let text = fill(&format!("messages[{number}]"), &message.content)?.into_owned();
            turns.push(Turn { role: role(message.role), text });
        }
        let instructions = fill("instructions", &job.instructions)?;
        let fixed = match place {
            InstructionsPosition::System => &job.instructions,
            InstructionsPosition::Before | InstructionsPosition::Around => {
                job.system.as_deref().unwrap_or_default()
            }
        };
        let is_shared = !job.template || Text { place: "", text: fixed }.names()?.is_empty();
        let system = system.unwrap_or_default();
        Ok(Self { system, turns, place, instructions, is_shared })
    }

    /// Adds a note after the instructions.
    pub(crate) fn add(&mut self, note: &str) {
        self.instructions = format!("{}\n\n{note}", self.instructions).into();
    }

    /// The system prompt.
    pub(crate) fn system(&self) -> &str {
        match self.place {
            InstructionsPosition::System => &self.instructions,
            InstructionsPosition::Before | InstructionsPosition::Around => &self.system,
        }
    }

    /// The content of the document's own turn.
    pub(crate) fn document_turn(&self) -> Said<'_> {
        document_turn(self.place, &self.instructions)
    }

    /// Estimates the tokens of all text, without the markers of roles. The second value is whether
    /// the document's tokens are included.
    pub(crate) fn tokens(&self) -> (u64, bool) {
        let turns: u64 = self.turns.iter().map(|turn| tokens::estimate(&turn.text)).sum();
        let own = tokens::estimate(&self.instructions);
        let system = if self.system.is_empty() { 0 } else { tokens::estimate(&self.system) };
        (turns + own + system, self.place == InstructionsPosition::Around)
    }
}

/// Whether no text of the author's can grow to much more than the facts of a document.
pub(crate) fn is_plain(job: &Job) -> bool {
    !job.template || texts(job).into_iter().all(|(_, text)| template::is_plain(text))
}

/// All texts of a batch's author, with the field of each.
pub(crate) fn texts(job: &Job) -> Vec<(String, &str)> {
    let system = job.system.iter().map(|text| ("system".to_owned(), text.as_str()));
    let messages = job.messages.iter().enumerate();
    let messages = messages.map(|(at, it)| (format!("messages[{at}]"), it.content.as_str()));
    let own = [("instructions".to_owned(), job.instructions.as_str())];
    system.chain(messages).chain(own).collect()
}

fn place(job: &Job) -> Result<InstructionsPosition, String> {
    if job.template {
        for (place, text) in texts(job) {
            if (Text { place: &place, text }).names()?.contains("document") {
                return Ok(InstructionsPosition::Around);
            }
        }
    }
    Ok(if job.system.is_some() {
        InstructionsPosition::Before
    } else {
        InstructionsPosition::System
    })
}

fn document_turn(place: InstructionsPosition, instructions: &str) -> Said<'_> {
    match place {
        InstructionsPosition::System => Said::Nothing,
        InstructionsPosition::Before => Said::Before(instructions),
        InstructionsPosition::Around => Said::Instead(instructions),
    }
}

/// Turns an example into two turns: its document, and its answer.
fn example(
    job: &Job,
    place: InstructionsPosition,
    number: usize,
    shown: &contract::Example,
) -> Result<[Turn; 2], String> {
    let text = |name: &str| shown.fields.get(name).and_then(serde_json::Value::as_str);
    let (id, name) = (text("id").unwrap_or_default(), text("name").unwrap_or_default());
    let (fields, text) = (Cow::Borrowed(&shown.fields), shown.document.as_str().into());
    let about = DocumentFacts { id: id.into(), name: name.into(), fields, text };
    let (mut own_place, mut instructions) = (place, Cow::Borrowed(job.instructions.as_str()));
    if job.template && place != InstructionsPosition::System {
        let at = format!("instructions for line {} of examples", number + 1);
        let asked = Text { place: &at, text: &job.instructions };
        if place == InstructionsPosition::Around && !asked.names()?.contains("document") {
            own_place = InstructionsPosition::Before;
        }
        instructions = asked.fill(&about.variables())?.into();
    }
    let question = prompt::turn(document_turn(own_place, &instructions), &shown.document);
    Ok([
        Turn { role: Role::User, text: question },
        Turn { role: Role::Assistant, text: shown.answer.clone() },
    ])
}

pub(crate) fn role(role: contract::Role) -> Role {
    match role {
        contract::Role::Assistant => Role::Assistant,
        contract::Role::System | contract::Role::User => Role::User,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use serde_json::json;
    use tidegate_types::DocumentId;

    use super::*;

    #[test]
    fn a_document_has_the_name_of_its_file_wherever_it_lies() {
        for (uri, name) in [
            ("file:///in/a%20b.txt", "a b.txt"),
            ("file:///in/all.zip#x/c%23.txt", "c#.txt"),
            ("file:///in/all.zip#2%2Fc.txt", "c.txt"),
            ("file:///in/all.zip#x/in.zip#3%2Fc.txt", "c.txt"),
        ] {
            let document = Document::file(DocumentId::from_relative_path("d"), uri.to_owned());
            assert_eq!(DocumentFacts::new(&document, "").name, name, "{uri}");
        }
    }

    fn job(more: serde_json::Value) -> Job {
        let mut job = json!({"source": {"prefix": "file:///in/"}, "output": "file:///out/",
            "instructions": "Sum up {{ name }}.", "model": "a:b", "lane": "batch",
            "tenant": "default", "max_output_tokens": 9});
        job.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(job).unwrap()
    }

    /// The system prompt, the turns, and the document's own turn.
    fn words(more: serde_json::Value) -> (String, Vec<String>, String) {
        let job = job(more);
        let fields = json!({"city": "Husum", "year": 7}).as_object().unwrap().clone();
        let about = DocumentFacts {
            id: "a-1".into(),
            name: "a.txt".into(),
            fields: Cow::Borrowed(&fields),
            text: "Ebb.".into(),
        };
        let wording = PromptText::build(&job, &about).unwrap();
        let own = prompt::turn(wording.document_turn(), &about.text);
        let turns = wording.turns.iter().map(|turn| turn.text.clone()).collect();
        (wording.system().to_owned(), turns, own)
    }

    const DOCUMENT: &str = "<document>\nEbb.\n</document>";

    #[test]
    fn without_the_flag_nothing_is_filled_in() {
        let (system, turns, own) = words(json!({}));
        assert_eq!((system.as_str(), own.as_str()), ("Sum up {{ name }}.", DOCUMENT));
        assert!(turns.is_empty());
    }

    #[test]
    fn instructions_stand_where_their_author_wants_them() {
        let (system, _, own) = words(json!({"template": true}));
        assert_eq!((system.as_str(), own.as_str()), ("Sum up a.txt.", DOCUMENT));
        let (system, _, own) = words(json!({"template": true, "system": "Be brief."}));
        assert_eq!((system.as_str(), own), ("Be brief.", format!("Sum up a.txt.\n\n{DOCUMENT}")));
        let around = "{{ city }}, {{ year }}: {{ document }}";
        let (system, _, own) = words(json!({"template": true, "instructions": around}));
        assert_eq!((system.as_str(), own.as_str()), ("", "Husum, 7: Ebb."));
    }

    #[test]
    fn examples_are_asked_as_documents_are() {
        let shown = json!([{"document": "Flood.", "answer": "High.", "fields": {"city": "Emden"}}]);
        let (_, turns, _) = words(json!({"shown": shown}));
        assert_eq!(turns, ["<document>\nFlood.\n</document>", "High."]);
        let around =
            json!({"shown": shown, "template": true, "instructions": "{{ city }}: {{ document }}"});
        assert_eq!(words(around).1, ["Emden: Flood.", "High."]);
        let messages = json!([{"role": "user", "content": "Read {{ document }}"}, {"role": "assistant", "content": "Yes."}]);
        let (_, turns, own) =
            words(json!({"template": true, "messages": messages, "system": "", "shown": shown}));
        assert_eq!(turns[0], "Sum up .\n\n<document>\nFlood.\n</document>");
        assert_eq!((turns[2].as_str(), own.as_str()), ("Read Ebb.", "Sum up a.txt."));
    }

    #[test]
    fn what_is_added_stands_after_the_instructions() {
        let job = job(json!({"template": true, "instructions": "{{ document }}"}));
        let fields = Map::new();
        let about = DocumentFacts {
            id: "a".into(),
            name: "a".into(),
            fields: Cow::Borrowed(&fields),
            text: "Ebb.".into(),
        };
        let mut wording = PromptText::build(&job, &about).unwrap();
        wording.add("Again.");
        assert_eq!(
            (wording.document_turn(), wording.system()),
            (Said::Instead("Ebb.\n\nAgain."), "")
        );
        assert!(wording.is_shared && wording.tokens().1);
    }
}
