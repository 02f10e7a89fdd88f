//! How many answers are as they should be, field by field.
//!
//! What is expected may be a JSON object: then each of its fields is compared, those of objects in it
//! by their path, such as `total.amount`. Anything else is compared with the whole answer, under
//! [`WHOLE`]. Numbers agree by their value, texts whatever the spaces between their words, and a field
//! that is missing with `null`.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::number::float;

/// The one field of an answer that is no object.
pub const WHOLE: &str = "answer";

/// So many documents are named that do not agree.
const DISAGREEMENTS: usize = 10_000;

/// So many different mistakes are told apart in a field.
const MISTAKES: usize = 100;

/// So much of a value is shown among the mistakes, in letters.
const SHOWN: usize = 80;

/// So much of it is kept among the disagreements, in letters: all of them are held until a batch ends.
const KEPT: usize = 500;

/// So many are named where something is missing.
const UNMATCHED_NAMED: usize = 5;

/// Of a normal distribution, 95 % lie within so many standard deviations.
const DEVIATIONS: f64 = 1.959_964;

/// How many of some comparisons agree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Counts", into = "ShownRate")]
pub struct Rate {
    /// Those that agree.
    pub agreed: u64,
    /// All.
    pub compared: u64,
}

#[derive(Deserialize)]
struct Counts {
    agreed: u64,
    compared: u64,
}

/// With what follows from the counts.
#[derive(Serialize)]
struct ShownRate {
    agreed: u64,
    compared: u64,
    part: f64,
    interval: [f64; 2],
}

impl From<Counts> for Rate {
    fn from(Counts { agreed, compared }: Counts) -> Self {
        Self { agreed, compared }
    }
}

impl From<Rate> for ShownRate {
    fn from(rate: Rate) -> Self {
        let Rate { agreed, compared } = rate;
        Self { agreed, compared, part: rate.part(), interval: rate.interval() }
    }
}

impl Rate {
    fn add(&mut self, agrees: bool) {
        self.compared += 1;
        self.agreed += u64::from(agrees);
    }

    /// The part that agrees; 0 of nothing.
    pub fn part(self) -> f64 {
        if self.compared == 0 { 0.0 } else { float(self.agreed) / float(self.compared) }
    }

    /// The interval that holds the part of all such documents in 95 of 100 samples, by Wilson's score
    /// (E. B. Wilson, "Probable inference", 1927); from 0 to 1 of nothing.
    pub fn interval(self) -> [f64; 2] {
        if self.compared == 0 {
            return [0.0, 1.0];
        }
        let (count, part, square) = (float(self.compared), self.part(), DEVIATIONS * DEVIATIONS);
        let middle = (part + square / (2.0 * count)) / (1.0 + square / count);
        let spread = part * (1.0 - part) / count + square / (4.0 * count * count);
        let half = DEVIATIONS * spread.sqrt() / (1.0 + square / count);
        [(middle - half).max(0.0), (middle + half).min(1.0)]
    }
}

/// One field's agreement.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Field {
    /// How many agree.
    #[serde(flatten)]
    pub rate: Rate,
    /// What was answered in place of what, the most frequent first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub confusion: Vec<Mistake>,
}

/// What was answered in place of what is expected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mistake {
    /// As JSON, cut.
    pub expected: String,
    /// As JSON, cut.
    pub answered: String,
    /// How many documents.
    pub documents: u64,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { expected, answered, documents } = self;
        write!(f, "{documents} × {answered} in place of {expected}")
    }
}

/// A field of a document that does not agree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Disagreement {
    /// The document.
    pub id: String,
    /// The field's path.
    pub field: String,
    /// What it should be.
    pub expected: Value,
    /// What it is.
    pub answered: Value,
}

/// How many there are, and the names of the first of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unmatched {
    /// All.
    pub count: u64,
    /// The first few.
    pub first: Vec<String>,
}

impl Unmatched {
    pub(crate) fn add(&mut self, name: &str) {
        self.count += 1;
        if self.first.len() < UNMATCHED_NAMED {
            self.first.push(name.to_owned());
        }
    }

    fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl fmt::Display for Unmatched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.first.join(", "))?;
        let more = self.count.saturating_sub(self.first.len() as u64);
        if more > 0 { write!(f, " and {more} more") } else { Ok(()) }
    }
}

/// How many of some documents' answers agree.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Agreement {
    /// Answers of which every field agrees.
    pub documents: Rate,
    /// Documents of the batch with something that is expected and no answer.
    #[serde(default)]
    pub unanswered: u64,
    /// Ids of the truth that no document of the batch has.
    #[serde(default, skip_serializing_if = "Unmatched::is_empty")]
    pub without_document: Unmatched,
    /// Documents of the batch that the truth has no row for.
    #[serde(default, skip_serializing_if = "Unmatched::is_empty")]
    pub without_truth: Unmatched,
    /// Each field, by its path.
    pub fields: BTreeMap<String, Field>,
    /// US dollars that the compared answers have cost, of those whose price is known.
    #[serde(default)]
    pub cost_usd: f64,
    /// How many those are.
    #[serde(default)]
    pub priced: u64,
}

/// An agreement, and those that do not agree.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// In figures.
    pub agreement: Agreement,
    /// One by one, the first of them.
    pub disagreements: Vec<Disagreement>,
}

impl Compared {
    /// Adds a document's answer, which has cost so many US dollars.
    pub fn add(&mut self, id: &str, expected: &Value, answer: &str, usd: Option<f64>) {
        let answered = match expected {
            // A text may be written as it is, or as JSON.
            Value::String(_) => serde_json::from_str::<String>(answer).ok().map(Value::String),
            _ => serde_json::from_str(answer).ok(),
        };
        let answered = answered.unwrap_or_else(|| Value::String(answer.to_owned()));
        let mut all_agree = true;
        for (path, expected, found) in leaves(expected, &answered) {
            let agrees = agree(expected, found);
            all_agree &= agrees;
            let field = self.agreement.fields.entry(path.clone()).or_default();
            field.rate.add(agrees);
            if agrees {
                continue;
            }
            field.confuse(expected, found);
            if self.disagreements.len() < DISAGREEMENTS {
                let (id, expected, answered) = (id.to_owned(), kept(expected), kept(found));
                self.disagreements.push(Disagreement { id, field: path, expected, answered });
            }
        }
        self.agreement.documents.add(all_agree);
        if let Some(usd) = usd {
            self.agreement.cost_usd += usd;
            self.agreement.priced += 1;
        }
    }

    /// As it is reported: the most frequent mistakes first.
    pub fn told(mut self) -> Self {
        for field in self.agreement.fields.values_mut() {
            field.confusion.sort_by_key(|mistake| std::cmp::Reverse(mistake.documents));
        }
        self
    }
}

impl Field {
    fn confuse(&mut self, expected: &Value, answered: &Value) {
        let (expected, answered) = (shown(expected), shown(answered));
        let known = |it: &Mistake| it.expected == expected && it.answered == answered;
        match self.confusion.iter().position(known) {
            Some(at) => self.confusion[at].documents += 1,
            None if self.confusion.len() < MISTAKES => {
                self.confusion.push(Mistake { expected, answered, documents: 1 });
            }
            None => {}
        }
    }
}

/// What is compared, by its path, and what stands there; null where nothing does.
fn leaves<'v>(expected: &'v Value, answered: &'v Value) -> Vec<(String, &'v Value, &'v Value)> {
    let Value::Object(fields) = expected else {
        return vec![(WHOLE.to_owned(), expected, answered)];
    };
    let (mut leaves, mut open) = (Vec::new(), vec![(String::new(), fields, answered)]);
    while let Some((above, fields, answered)) = open.pop() {
        for (name, expected) in fields {
            let path = if above.is_empty() { name.clone() } else { format!("{above}.{name}") };
            let found = answered.get(name).unwrap_or(&Value::Null);
            match expected {
                Value::Object(inner) if !inner.is_empty() => open.push((path, inner, found)),
                _ => leaves.push((path, expected, found)),
            }
        }
    }
    leaves
}

fn agree(expected: &Value, answered: &Value) -> bool {
    match (expected, answered) {
        (Value::Number(one), Value::Number(other)) => match (one.as_f64(), other.as_f64()) {
            (Some(one), Some(other)) => (one - other).abs() <= 1e-9 * one.abs().max(other.abs()),
            _ => one == other,
        },
        (Value::String(one), Value::String(other)) => {
            one.split_whitespace().eq(other.split_whitespace())
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| agree(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let at = |name: &String| {
                let of = |object: &'_ Map<String, Value>| object.get(name).cloned();
                agree(&of(one).unwrap_or_default(), &of(other).unwrap_or_default())
            };
            one.keys().chain(other.keys()).all(at)
        }
        (one, other) => one == other,
    }
}

fn shown(value: &Value) -> String {
    cut(value.to_string(), SHOWN)
}

/// As it stands among the disagreements: a long text is cut.
fn kept(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(cut(text.clone(), KEPT)),
        Value::Array(_) | Value::Object(_) if value.to_string().len() > KEPT => {
            Value::String(cut(value.to_string(), KEPT))
        }
        value => value.clone(),
    }
}

fn cut(text: String, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use serde_json::json;

    use super::*;

    fn compared(pairs: &[(Value, &str)]) -> Compared {
        let mut compared = Compared::default();
        for (number, (expected, answer)) in pairs.iter().enumerate() {
            compared.add(&number.to_string(), expected, answer, Some(0.5));
        }
        compared.told()
    }

    #[test]
    fn fields_are_compared_by_their_values() {
        let expected = json!({"total": {"amount": 5.0, "currency": "EUR"}, "to": "Anna  Berg", "note": null, "a.b": [1, 2]});
        let right =
            r#"{"total":{"amount":5,"currency":"EUR"},"to":"Anna Berg","a.b":[1,2.0],"more":1}"#;
        let wrong = r#"{"total":{"amount":6,"currency":"EUR"},"to":"Anna","a.b":[2,1]}"#;
        let all = compared(&[
            (expected.clone(), right),
            (expected.clone(), wrong),
            (expected.clone(), wrong),
            (expected, "no JSON"),
        ]);
        let told = &all.agreement;
        assert_eq!(told.documents, Rate { agreed: 1, compared: 4 });
        let agreed = |path: &str| told.fields[path].rate.agreed;
        let paths = ["total.amount", "total.currency", "to", "note", "a.b"];
        assert_eq!(paths.map(agreed), [1, 3, 1, 4, 1]);
        let most = &told.fields["total.amount"].confusion[0];
        assert_eq!((&*most.expected, &*most.answered, most.documents), ("5.0", "6", 2));
        assert_eq!(all.disagreements.len(), 3 + 3 + 4);
        assert_eq!((told.cost_usd, told.priced), (2.0, 4));
    }

    #[test]
    fn an_answer_that_is_no_object_is_compared_whole() {
        let all = compared(&[
            (json!("yes"), " yes\n"),
            (json!("yes"), "\"yes\""),
            (json!(7), "7.0"),
            (json!(true), "false"),
            (json!("7"), "7"),
        ]);
        assert_eq!(all.agreement.fields[WHOLE].rate, Rate { agreed: 4, compared: 5 });
        let long = compared(&[(json!("ebb"), &*"flood ".repeat(1_000))]);
        let Value::String(kept) = &long.disagreements[0].answered else { panic!("{long:?}") };
        assert_eq!(kept.chars().count(), KEPT + 1);
    }

    /// By the binomial distribution of samples of 300 documents.
    #[test]
    fn the_interval_holds_the_truth_in_95_of_100_samples() {
        for truth in [0.8_f64, 0.9, 0.97] {
            let (mut held, mut logarithm) = (0.0, 300.0 * (1.0 - truth).ln());
            for agreed in 0..=300 {
                let [from, to] = Rate { agreed, compared: 300 }.interval();
                held += if from <= truth && truth <= to { logarithm.exp() } else { 0.0 };
                let more = (300.0 - float(agreed)) / float(agreed + 1);
                logarithm += (more * truth / (1.0 - truth)).ln();
            }
            assert!((0.93..=0.97).contains(&held), "{held} at {truth}");
        }
        assert_eq!(Rate::default().interval(), [0.0, 1.0]);
        let all = Rate { agreed: 100, compared: 100 }.interval();
        assert!((all[0] - 0.963).abs() < 1e-3 && (all[1] - 1.0).abs() < 1e-9, "{all:?}");
    }

    #[test]
    fn it_is_written_with_what_follows_and_read_again() {
        let all = compared(&[(json!({"a": 1}), r#"{"a": 2}"#)]);
        let written = serde_json::to_value(&all).unwrap();
        assert_eq!(written["agreement"]["fields"]["a"]["part"], json!(0.0));
        assert!(written["agreement"]["documents"]["interval"][1].as_f64().unwrap() > 0.7);
        assert_eq!(serde_json::from_value::<Compared>(written).unwrap(), all);
    }
}
