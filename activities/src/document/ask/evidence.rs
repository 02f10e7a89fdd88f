//! Evidence: quotes of the document that support an answer. The model gives them with the answer,
//! and they are searched in the text that was sent.
//!
//! The provider gets a schema of `{"answer", "evidence"}`: the author's schema, or a text, and a list
//! of quotes for each field. The reply is split into the two.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json, value::RawValue};
use tidegate_documents::quote::{self, Searched};
use tidegate_workflows::contract::Job;

use crate::{
    document::ask::prompt::Content,
    failure::Failure,
    output::{
        job::Document,
        result::{Evidence, WHOLE},
    },
};

/// Added after the batch's instructions.
pub(crate) const NOTE: &str = "Answer with a JSON object of two fields. `answer` is the answer itself. `evidence` has, for each field of it, the words of the \
    document that it rests on: copied exactly, nothing left out or mended, a line or a sentence each and never less than 12 letters; none where \
    the document does not say it.";

/// Most quotes of a field that are searched. An answer that rests on more can be read by nobody.
const MAX_QUOTES: usize = 100;

/// Most bytes of text that are searched for the quotes of one answer: five hundred quotes in a
/// document of 1 MB. The search takes a second at the worst, beside the runtime's threads.
const MAX_SEARCHED_BYTES: usize = 512 << 20;

/// The schema that is sent for a job's question.
pub(crate) fn schema_with_evidence(job: &Job) -> Option<Value> {
    if !job.evidence {
        return job.schema.clone();
    }
    let mut answer = job.schema.clone().unwrap_or_else(|| json!({"type": "string"}));
    let quotes = json!({"type": "array", "items": {"type": "string"}});
    let fields = list_fields(job.schema.as_ref());
    let quotes: Map<String, Value> =
        fields.iter().map(|field| (field.clone(), quotes.clone())).collect();
    let object = |fields: Value, required: &[String]| json!({"type": "object", "properties": fields, "required": required, "additionalProperties": false});
    let evidence = object(quotes.into(), &fields);
    // Definitions stay at the top, where references look for them.
    let definitions = ["$defs", "definitions"].map(|name| {
        let moved = answer.as_object_mut().and_then(|answer| answer.remove(name));
        (name, moved)
    });
    let both = json!({"answer": answer, "evidence": evidence});
    let mut form = object(both, &["answer".to_owned(), "evidence".to_owned()]);
    for (name, moved) in definitions {
        if let Some(moved) = moved {
            form[name] = moved;
        }
    }
    Some(form)
}

/// An answer, split from the quotes of its fields.
#[derive(Debug, PartialEq)]
struct SplitReply {
    /// The answer in the form that it has without evidence.
    answer: String,
    quotes: BTreeMap<String, Quotes>,
}

#[derive(Deserialize)]
struct Both<'a> {
    #[serde(borrow)]
    answer: &'a RawValue,
    #[serde(default)]
    evidence: BTreeMap<String, Quotes>,
}

/// One quote or a list of quotes. Models that receive the schema as a text may give a single quote.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum Quotes {
    Several(Vec<String>),
    One(String),
    None(()),
}

/// Splits a reply into the answer and its quotes.
///
/// # Errors
/// The fault of the reply, without a quote of it.
fn split_reply(schema: Option<&Value>, answer: &str) -> Result<SplitReply, String> {
    let wrong = |error: serde_json::Error| {
        let place = format!("line {}, column {}", error.line(), error.column());
        format!("it is no JSON object of answer and evidence, at {place}")
    };
    let Both { answer, evidence } = serde_json::from_str(answer).map_err(wrong)?;
    let answer = match schema {
        Some(_) => answer.get().to_owned(),
        None => serde_json::from_str(answer.get())
            .map_err(|_| "at /answer: it is no text".to_owned())?,
    };
    Ok(SplitReply { answer, quotes: evidence })
}

/// The document's text as it was sent, in which quotes are searched.
#[derive(Debug)]
pub(crate) enum QuoteSource<'a> {
    /// The whole content, and where its pages begin in its text, in bytes.
    Whole(&'a Content, &'a [usize]),
    /// Parts by their numbers from 1, each with its start in the document's text; and the starts of the
    /// pages.
    Parts(&'a [(usize, usize, &'a str)], &'a [usize]),
    /// The text is not available any more.
    Gone,
}

/// The texts to search. They are copies, because the search runs on another thread.
struct Sought {
    pieces: Vec<Piece>,
    /// Starts of the pages.
    pages: Vec<usize>,
    /// Whether all that was sent is text.
    is_all_text: bool,
}

struct Piece {
    text: String,
    /// Where it begins in the document's text; `None` for a text that is not part of it.
    at: Option<usize>,
    part: Option<usize>,
}

impl QuoteSource<'_> {
    /// The texts to search. A record's fields are included, because a template may have put them
    /// into the prompt.
    fn sought(&self, job: &Job, document: &Document) -> Sought {
        let piece = |part, at, text: &str| Piece { text: text.to_owned(), at, part };
        let mut pieces: Vec<_> = match self {
            Self::Whole(content, _) => vec![piece(None, Some(0), content.own_text())],
            Self::Parts(parts, _) => {
                parts.iter().map(|(part, at, text)| piece(Some(*part), Some(*at), text)).collect()
            }
            Self::Gone => Vec::new(),
        };
        if job.template {
            let fields = document.fields.values().filter_map(Value::as_str);
            pieces.extend(fields.map(|text| piece(None, None, text)));
        }
        let pages = match self {
            Self::Whole(_, pages) | Self::Parts(_, pages) => pages.to_vec(),
            Self::Gone => Vec::new(),
        };
        let is_all_text = matches!(self, Self::Whole(Content::Text(_), _) | Self::Parts(..));
        Sought { pieces, pages, is_all_text }
    }
}

impl Sought {
    /// Finds a quote in the pieces, which are `folded`.
    fn find_quote(&self, folded: &[Searched<'_>], field: &str, quote: &str) -> Evidence {
        let mut pieces = folded.iter().zip(&self.pieces);
        let place = pieces.find_map(|(folded, piece)| Some((folded.find(quote)?, piece)));
        let page = place.and_then(|(at, piece)| {
            let at = at + piece.at?;
            Some(self.pages.partition_point(|page| *page <= at)).filter(|page| *page > 0)
        });
        let found = match place {
            // A quote that is too short is never found.
            None if !self.is_all_text && quote::is_long_enough(quote) => None,
            place => Some(place.is_some()),
        };
        let part = place.and_then(|(_, piece)| piece.part);
        Evidence { field: field.to_owned(), quote: quote.to_owned(), page, part, found }
    }

    /// A quote beyond those that are searched. It counts as not found in a text.
    fn unsearched(&self, field: &str, quote: &str) -> Evidence {
        let (field, quote) = (field.to_owned(), quote.to_owned());
        let found = self.is_all_text.then_some(false);
        Evidence { field, quote, page: None, part: None, found }
    }
}

/// Splits an answer from its evidence, if evidence was asked for.
///
/// The second value is the evidence; or an error that states the fault in its form, and then the
/// answer is unchanged.
pub(crate) async fn take_evidence(
    job: &Job,
    answer: String,
    document: &Document,
    sought: &QuoteSource<'_>,
) -> (String, Result<Option<Vec<Evidence>>, String>) {
    if !job.evidence {
        return (answer, Ok(None));
    }
    let (schema, sought) = (job.schema.clone(), sought.sought(job, document));
    let search = move || match split_reply(schema.as_ref(), &answer) {
        Ok(opened) => {
            let evidence = opened.evidence(schema.as_ref(), &sought);
            (opened.answer, Ok(Some(evidence)))
        }
        Err(wrong) => (answer, Err(wrong)),
    };
    let found = tokio::task::spawn_blocking(search).await;
    found.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}

impl SplitReply {
    /// Finds each field's quotes. A field with an answer and no quote gets an empty quote.
    fn evidence(&self, schema: Option<&Value>, sought: &Sought) -> Vec<Evidence> {
        let answer = match schema {
            Some(_) => serde_json::from_str(&self.answer).unwrap_or_default(),
            None => Value::from(&*self.answer),
        };
        let folded: Vec<_> = sought.pieces.iter().map(|piece| Searched::new(&piece.text)).collect();
        let mut evidence = Vec::new();
        let bytes: usize = sought.pieces.iter().map(|piece| piece.text.len()).sum();
        // Quotes that may still be searched.
        let mut left = MAX_SEARCHED_BYTES / bytes.max(1);
        for field in list_fields(schema) {
            let quotes = match self.quotes.get(&field) {
                Some(Quotes::Several(quotes)) => quotes.as_slice(),
                Some(Quotes::One(quote)) => std::slice::from_ref(quote),
                Some(Quotes::None(())) | None => &[],
            };
            let (searched, others) = quotes.split_at(quotes.len().min(MAX_QUOTES).min(left));
            left -= searched.len();
            evidence.extend(searched.iter().map(|quote| sought.find_quote(&folded, &field, quote)));
            evidence.extend(others.iter().map(|quote| sought.unsearched(&field, quote)));
            if quotes.is_empty() && says_something(&answer, &field) {
                evidence.push(sought.find_quote(&folded, &field, ""));
            }
        }
        evidence
    }
}

/// Whether an answer has this field with a value that is not empty.
fn says_something(answer: &Value, path: &str) -> bool {
    let pointer = format!("/{}", path.replace('.', "/"));
    match answer.pointer(&pointer).or_else(|| (path == WHOLE).then_some(answer)) {
        None | Some(Value::Null) => false,
        Some(Value::String(text)) => !text.trim().is_empty(),
        Some(Value::Array(values)) => !values.is_empty(),
        Some(_) => true,
    }
}

/// Maximum depth of nested objects whose fields have quotes of their own; a deeper object has
/// quotes as a whole.
const MAX_DEPTH: usize = 4;

/// Most fields with quotes. No provider takes a schema of so many, and each adds a line to a result.
const MAX_FIELDS: usize = 1_000;

/// Checks that an answer has few enough fields for quotes of each.
///
/// # Errors
/// `InvalidInput` states the remedy.
pub(crate) fn check_fields(job: &Job) -> Result<(), Failure> {
    if job.evidence && list_fields(job.schema.as_ref()).len() > MAX_FIELDS {
        return Err(Failure::invalid_input(format!(
            "evidence: the schema has more than {MAX_FIELDS} fields, counted {MAX_DEPTH} objects deep, and each would need quotes of its own; ask for fewer fields, or leave evidence out"
        )));
    }
    Ok(())
}

/// Paths of the fields that have quotes: those of the schema's objects, or the whole answer. At most
/// one more than [`MAX_FIELDS`].
pub(super) fn list_fields(schema: Option<&Value>) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(schema) = schema {
        let mut fields = FieldPaths { root: schema, references: vec![""], found };
        fields.add(schema, "", MAX_DEPTH);
        found = fields.found;
    }
    if found.is_empty() { vec![WHOLE.to_owned()] } else { found }
}

/// The search for the fields of a schema.
struct FieldPaths<'s> {
    root: &'s Value,
    /// The references between the root and the schema that is searched.
    references: Vec<&'s str>,
    found: Vec<String>,
}

impl<'s> FieldPaths<'s> {
    fn add(&mut self, schema: &'s Value, path: &str, depth: usize) {
        if self.found.len() > MAX_FIELDS {
            return;
        }
        let reference = schema.get("$ref").and_then(Value::as_str);
        let reference = reference.and_then(|to| to.strip_prefix('#'));
        let root = self.root;
        let target = reference.and_then(|to| Some((to, root.pointer(to)?)));
        match target {
            // A schema that refers to itself has no end: its object has quotes as a whole.
            Some((to, _)) if self.references.contains(&to) => self.add_path(path),
            Some((to, target)) => {
                self.references.push(to);
                self.add_fields(target, path, depth);
                self.references.pop();
            }
            None => self.add_fields(schema, path, depth),
        }
    }

    fn add_fields(&mut self, schema: &'s Value, path: &str, depth: usize) {
        let properties = schema.get("properties").and_then(Value::as_object);
        match properties.filter(|properties| depth > 0 && !properties.is_empty()) {
            Some(properties) => {
                for (name, property) in properties {
                    let path =
                        if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    self.add(property, &path, depth - 1);
                }
            }
            None => self.add_path(path),
        }
    }

    fn add_path(&mut self, path: &str) {
        if !path.is_empty() {
            self.found.push(path.to_owned());
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use tidegate_types::DocumentId;

    use super::*;
    use crate::schema::SchemaValidator;

    fn job(more: Value) -> Job {
        let mut job = json!({"source": {"prefix": "file:///in/"}, "output": "file:///out/",
            "instructions": "Read it.", "model": "a:b", "lane": "batch", "tenant": "default",
            "max_output_tokens": 9, "evidence": true});
        job.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(job).unwrap()
    }

    fn document(fields: Value) -> Document {
        let document =
            Document::file(DocumentId::from_relative_path("d"), "file:///in/d".to_owned());
        Document { fields: fields.as_object().unwrap().clone(), ..document }
    }

    fn invoice() -> Value {
        json!({"type": "object", "required": ["to", "total"],
            "properties": {"to": {"type": "string"}, "total": {"$ref": "#/$defs/money"}, "note": {"type": ["string", "null"]}},
            "$defs": {"money": {"type": "object", "properties": {"amount": {"type": "number"}, "currency": {"type": "string"}}}}})
    }

    #[test]
    fn the_authors_schema_stands_in_another_and_its_answer_comes_out_as_it_was() {
        let job = job(json!({"schema": invoice()}));
        let form = schema_with_evidence(&job).unwrap();
        let fields = ["note", "to", "total.amount", "total.currency"];
        assert_eq!(form["properties"]["evidence"]["required"], json!(fields));
        assert!(form["$defs"]["money"].is_object(), "{form}");
        let answer = "{ \"to\":\"Anna\",\n  \"total\":{\"amount\":119.00} }";
        let came = format!(
            "{{\"answer\": {answer}, \"evidence\": {{\"to\": [\"To Anna Berg\"], \"note\": [], \"total.amount\": [], \"total.currency\": []}}}}"
        );
        SchemaValidator::compile(&form).unwrap().check(&came).unwrap();
        let opened = split_reply(job.schema.as_ref(), &came).unwrap();
        assert_eq!(opened.answer, answer);
        let content = Content::Text("Invoice\n\nTo Anna\u{a0}Berg of Husum".to_owned());
        let document = document(json!({}));
        let sought = QuoteSource::Whole(&content, &[0, 9]);
        let found = opened.evidence(job.schema.as_ref(), &sought.sought(&job, &document));
        // The note has no quote, and nothing supports the amount.
        let seen: Vec<_> = found.iter().map(|it| (&*it.field, it.page, it.found)).collect();
        assert_eq!(seen, [("to", None, Some(false)), ("total.amount", None, Some(false))]);
        assert!(found.iter().any(|it| it.found == Some(false)));
    }

    #[test]
    fn quotes_are_looked_for_in_what_was_sent_page_by_page() {
        let job = job(json!({"template": true}));
        let came = json!({"answer": "Yes.", "evidence": {"answer": [
            "the tide turns at noon", "Kapitän aus Husum", "the tide never turns", "tide"]}});
        let opened = split_reply(job.schema.as_ref(), &came.to_string()).unwrap();
        assert_eq!(opened.answer, "Yes.");
        let text = "First page.\n\nHere the tide\nturns at noon.".to_owned();
        let document = document(json!({"from": "ein Kapitän aus Husum"}));
        let pages = [0, 13];
        let looked = |content: &Content| {
            let found =
                opened.evidence(None, &QuoteSource::Whole(content, &pages).sought(&job, &document));
            found.into_iter().map(|it| (it.page, it.found)).collect::<Vec<_>>()
        };
        let text = Content::Text(text);
        let [yes, no] = [Some(true), Some(false)];
        assert_eq!(looked(&text), [(Some(2), yes), (None, yes), (None, no), (None, no)]);
        let pdf = Content::Pdf(bytes::Bytes::new(), 2);
        assert_eq!(looked(&pdf), [(None, None), (None, yes), (None, None), (None, no)]);
        let parts = [(1, 0, "First page."), (2, 13, "Here the tide\nturns at noon.")];
        let found =
            &opened.evidence(None, &QuoteSource::Parts(&parts, &pages).sought(&job, &document))[0];
        assert_eq!((found.part, found.page), (Some(2), Some(2)));
    }

    #[test]
    fn quotes_beyond_a_bound_are_not_searched() {
        let text = "The tide turns at noon. ".repeat(1 << 16);
        let quotes = |field: &str| vec![format!("{field} turns at noon"); 20_000];
        let schema = json!({"properties": (0..8).map(|at| (format!("p{at}"), json!({})))
            .collect::<Map<_, _>>()});
        let job = job(json!({"schema": schema}));
        let evidence: Map<String, Value> =
            (0..8).map(|at| (format!("p{at}"), json!(quotes("tide")))).collect();
        let came = json!({"answer": {}, "evidence": evidence}).to_string();
        let reply = split_reply(job.schema.as_ref(), &came).unwrap();
        let content = Content::Text(text);
        let found = reply.evidence(
            job.schema.as_ref(),
            &QuoteSource::Whole(&content, &[]).sought(&job, &document(json!({}))),
        );
        assert_eq!(found.len(), 8 * 20_000);
        let is_found = |it: &&Evidence| it.found == Some(true);
        let most = (MAX_SEARCHED_BYTES / content.own_text().len()).min(8 * MAX_QUOTES);
        assert_eq!(found.iter().filter(is_found).count(), most);
        assert!(most < 8 * MAX_QUOTES, "both bounds are reached");
    }

    #[tokio::test]
    async fn quotes_are_searched_beside_the_runtime() {
        let (job, content) = (job(json!({})), Content::Text("The tide turns. ".repeat(1 << 16)));
        let quotes = vec!["no quote of this text"; 100];
        let came = json!({"answer": "a", "evidence": {"answer": quotes}}).to_string();
        let (document, sought) = (document(json!({})), QuoteSource::Whole(&content, &[]));
        // The runtime has one thread, and the search is longer than a turn of it.
        let search = take_evidence(&job, came, &document, &sought);
        tokio::select! {
            biased;
            _ = search => panic!("the search has kept the thread"),
            () = tokio::task::yield_now() => {}
        }
    }

    #[tokio::test]
    async fn what_is_not_of_the_form_says_so_and_quotes_nothing() {
        let (text, list) = (job(json!({})), job(json!({"schema": {"type": "array"}})));
        for wrong in [
            "secret words",
            "{\"answer\": {\"secret\": 1}, \"evidence\": {}}",
            "{\"answer\": \"secr",
        ] {
            let why = split_reply(text.schema.as_ref(), wrong).unwrap_err();
            assert!(!why.contains("secret") && !why.is_empty(), "{why}");
        }
        for quotes in [json!("one of twelve letters"), json!(null), json!(["a", "b"])] {
            split_reply(
                text.schema.as_ref(),
                &json!({"answer": "a", "evidence": {"answer": quotes}}).to_string(),
            )
            .unwrap();
        }
        let opened =
            split_reply(list.schema.as_ref(), "{\"answer\": [1], \"evidence\": {}}").unwrap();
        let found = opened.evidence(
            list.schema.as_ref(),
            &QuoteSource::Parts(&[], &[]).sought(&list, &document(json!({}))),
        );
        assert_eq!((&*opened.answer, &*found[0].quote, found[0].found), ("[1]", "", Some(false)));
        let gone = take_evidence(
            &text,
            json!({"answer": "a", "evidence": {"answer": "one of twelve letters"}}).to_string(),
            &document(json!({})),
            &QuoteSource::Gone,
        )
        .await;
        assert_eq!(gone.1.unwrap().unwrap()[0].found, None);
        assert_eq!(schema_with_evidence(&job(json!({"evidence": false}))), None);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod quoted_fields_tests {
    use serde_json::{Map, json};

    use super::*;

    fn job(schema: &Value) -> Job {
        serde_json::from_value(
            json!({"source": {"prefix": "file:///in/"}, "output": "file:///out/",
            "instructions": "Read it.", "model": "a:b", "lane": "batch", "tenant": "default",
            "max_output_tokens": 9, "evidence": true, "schema": schema}),
        )
        .unwrap()
    }

    /// Without a bound, these are 150⁴ fields.
    #[test]
    fn a_schema_that_refers_to_itself_has_no_more_fields_than_it_names() {
        let properties: Map<String, Value> =
            (0..150).map(|at| (format!("p{at}"), json!({"$ref": "#/$defs/n"}))).collect();
        let schema = json!({"properties": properties, "$defs": {"n": {"properties": properties}}});
        let found = list_fields(Some(&schema));
        assert_eq!(found.len(), MAX_FIELDS + 1, "150 × 150, and the search stops at the bound");
        let failure = check_fields(&job(&schema)).unwrap_err();
        assert!(failure.message.contains("more than 1000 fields"), "{failure}");
        let tree = json!({"properties": {"left": {"$ref": "#"}, "n": {"type": "integer"}}});
        assert_eq!(list_fields(Some(&tree)), ["left", "n"]);
        check_fields(&job(&tree)).unwrap();
    }
}
