//! Rate of answers that agree with the expected ones, field by field.
//!
//! If the expected answer is a JSON object, each of its fields is compared; fields of nested
//! objects by their path, such as `total.amount`. Any other value is compared with the whole
//! answer, under [`WHOLE`]. Numbers agree by value, texts irrespective of the spaces between words,
//! and a missing field agrees with `null`. Of whole answers that differ as texts, a judge may say
//! whether they agree.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize, Serializer, ser::SerializeStruct as _};
use serde_json::{Map, Value};
use tidegate_types::ModelId;

use crate::{
    number::{count, float},
    output::result::WHOLE,
};

/// Most disagreements that are listed.
const DISAGREEMENTS: usize = 10_000;

/// Most different mistakes that are counted for a field.
const MISTAKES: usize = 100;

/// Longest value among the mistakes, in characters.
const SHOWN: usize = 80;

/// Longest value among the disagreements, in characters: all of them are held until a batch ends.
const KEPT: usize = 500;

/// Names in a list of missing ids.
const UNMATCHED_NAMED: usize = 5;

/// 95 % of a normal distribution lie within this many standard deviations.
const DEVIATIONS: f64 = 1.959_964;

/// How many comparisons agree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
pub struct Rate {
    /// Comparisons that agree.
    pub agreed: u64,
    /// All comparisons.
    pub compared: u64,
}

/// With the figures that follow from the counts.
impl Serialize for Rate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut rate = serializer.serialize_struct("Rate", 4)?;
        rate.serialize_field("agreed", &self.agreed)?;
        rate.serialize_field("compared", &self.compared)?;
        rate.serialize_field("part", &self.part())?;
        rate.serialize_field("interval", &self.interval())?;
        rate.end()
    }
}

impl Rate {
    fn add(&mut self, agrees: bool) {
        self.compared += 1;
        self.agreed += u64::from(agrees);
    }

    /// The proportion that agrees; 0 without comparisons.
    pub fn part(self) -> f64 {
        if self.compared == 0 { 0.0 } else { float(self.agreed) / float(self.compared) }
    }

    /// The 95 % confidence interval of the proportion, by Wilson's score (E. B. Wilson, "Probable
    /// inference", 1927); from 0 to 1 without comparisons.
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

/// The agreement of one field.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Field {
    /// How many agree.
    #[serde(flatten)]
    pub rate: Rate,
    /// The mistakes, the most frequent first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub confusion: Vec<Mistake>,
}

/// An answered value in place of an expected one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mistake {
    /// As JSON, cut.
    pub expected: String,
    /// As JSON, cut.
    pub answered: String,
    /// Documents with this mistake.
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
    /// The expected value.
    pub expected: Value,
    /// The answered value.
    pub answered: Value,
}

/// A number of ids, and the first of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unmatched {
    /// The number.
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
}

impl fmt::Display for Unmatched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.first.join(", "))?;
        let more = self.count.saturating_sub(self.first.len() as u64);
        if more > 0 { write!(f, " and {more} more") } else { Ok(()) }
    }
}

/// How many answers of some documents agree.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Agreement {
    /// Answers whose fields all agree.
    pub documents: Rate,
    /// What was compared, in a sentence.
    #[serde(default)]
    pub how: String,
    /// Answers that a judge was to compare and has not. They are in no rate.
    #[serde(default, skip_serializing_if = "tidegate_types::is_default")]
    pub unjudged: u64,
    /// Documents of the batch with an expected answer and no answer.
    #[serde(default)]
    pub unanswered: u64,
    /// Ids with an expected answer that no document of the source has.
    #[serde(default, skip_serializing_if = "tidegate_types::is_default")]
    pub without_document: Unmatched,
    /// Documents of the batch without an expected answer.
    #[serde(default, skip_serializing_if = "tidegate_types::is_default")]
    pub without_truth: Unmatched,
    /// The fields, by their paths.
    pub fields: BTreeMap<String, Field>,
    /// US dollars of the compared answers whose price is known.
    #[serde(default)]
    pub cost_usd: f64,
    /// Compared answers whose price is known.
    #[serde(default)]
    pub priced: u64,
    /// Seconds of the calls that gave the compared answers, as far as they are known.
    #[serde(default)]
    pub seconds: f64,
    /// Compared answers whose call's time is known.
    #[serde(default)]
    pub timed: u64,
}

impl Agreement {
    /// The answers that agree, where each that was not judged counts as different. Those that need no
    /// judge agree word by word, so the others alone would look better than all.
    pub fn at_worst(&self) -> Rate {
        let Rate { agreed, compared } = self.documents;
        Rate { agreed, compared: compared + self.unjudged }
    }

    /// What a document took, in a sentence, if that is known.
    pub fn each_document(&self) -> Option<String> {
        let each = |sum: f64, number: u64| (number > 0).then(|| sum / float(number));
        let price = each(self.cost_usd, self.priced).map(|usd| format!("${usd:.4}"));
        let time = each(self.seconds, self.timed).map(|seconds| format!("{seconds:.1} s"));
        let taken: Vec<String> = price.into_iter().chain(time).collect();
        (!taken.is_empty()).then(|| format!("a document: {}", taken.join(", ")))
    }

    /// What the figures are about, and what is in no figure, in sentences.
    pub fn notes(&self) -> Vec<String> {
        let Self { how, unjudged, unanswered, without_document, without_truth, .. } = self;
        let named = |ids: &Unmatched| (ids.count, format!(" ({ids})"));
        let left_out = [
            ("answers that were not judged, and are in no figure", (*unjudged, String::new())),
            ("documents without an answer", (*unanswered, String::new())),
            ("ids of the truth in no document of the source", named(without_document)),
            ("documents without a row in the truth", named(without_truth)),
        ];
        let left_out = left_out.into_iter().filter(|(_, (number, _))| *number > 0);
        let left_out =
            left_out.map(|(what, (number, ids))| format!("{what}: {}{ids}", count(number)));
        [format!("compared: {how}")].into_iter().chain(left_out).collect()
    }
}

/// An agreement, and the disagreements.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// The figures.
    pub agreement: Agreement,
    /// The first disagreements, one by one.
    pub disagreements: Vec<Disagreement>,
    /// Whole answers that were to be texts, compared or not judged.
    #[serde(default)]
    texts: u64,
}

impl Compared {
    /// Adds a document's answer, which has taken this many US dollars, and seconds of a call. `judge` decides on whole
    /// answers that differ as texts, as far as it can.
    pub fn add(
        &mut self,
        id: &str,
        expected: &Value,
        answer: &str,
        (usd, seconds): (Option<f64>, Option<f64>),
        mut judge: impl FnMut(&str, &str) -> Option<bool>,
    ) {
        let answered = match expected {
            // A text answer may be plain or JSON.
            Value::String(_) => serde_json::from_str::<String>(answer).ok().map(Value::String),
            _ => serde_json::from_str(answer).ok(),
        };
        let answered = answered.unwrap_or_else(|| Value::String(answer.to_owned()));
        self.texts += u64::from(expected.is_string());
        let mut all_agree = true;
        for (path, value, found) in leaves(expected, &answered) {
            let agrees = match (expected, found) {
                (Value::String(expected), Value::String(answered)) if !agree(value, found) => {
                    judge(expected, answered)
                }
                _ => Some(agree(value, found)),
            };
            let Some(agrees) = agrees else {
                self.agreement.unjudged += 1;
                return;
            };
            all_agree &= agrees;
            let field = self.agreement.fields.entry(path.clone()).or_default();
            field.rate.add(agrees);
            if agrees {
                continue;
            }
            field.confuse(value, found);
            if self.disagreements.len() < DISAGREEMENTS {
                let (id, expected, answered) =
                    (id.to_owned(), shorten_text(value), shorten_text(found));
                self.disagreements.push(Disagreement { id, field: path, expected, answered });
            }
        }
        self.agreement.documents.add(all_agree);
        self.agreement.cost_usd += usd.unwrap_or_default();
        self.agreement.priced += u64::from(usd.is_some());
        self.agreement.seconds += seconds.unwrap_or_default();
        self.agreement.timed += u64::from(seconds.is_some());
    }

    /// Orders the mistakes for the report, the most frequent first, and says what was compared,
    /// and by which judge.
    pub fn into_report(mut self, judge: Option<&ModelId>) -> Self {
        let texts = match judge {
            Some(judge) => format!("what whole answers say, as {judge} judges it"),
            None => {
                "whole answers word by word; tidegate compare --judge MODEL compares what they say"
                    .to_owned()
            }
        };
        let Agreement { documents, unjudged, .. } = &self.agreement;
        let has_values = documents.compared + unjudged > self.texts;
        let values = has_values.then(|| "fields by their values".to_owned());
        let parts: Vec<String> =
            values.into_iter().chain((self.texts > 0).then_some(texts)).collect();
        self.agreement.how = match parts.is_empty() {
            true => "nothing".to_owned(),
            false => parts.join(", and "),
        };
        for field in self.agreement.fields.values_mut() {
            field.confusion.sort_by_key(|mistake| std::cmp::Reverse(mistake.documents));
        }
        self
    }
}

impl Field {
    fn confuse(&mut self, expected: &Value, answered: &Value) {
        let (expected, answered) = (shortened_json(expected), shortened_json(answered));
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

/// Lists the compared values by path: the expected and the answered one, null if absent.
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

fn shortened_json(value: &Value) -> String {
    truncate(value.to_string(), SHOWN)
}

/// A value for the list of disagreements: a long text is cut.
fn shorten_text(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(truncate(text.clone(), KEPT)),
        Value::Array(_) | Value::Object(_) if value.to_string().len() > KEPT => {
            Value::String(truncate(value.to_string(), KEPT))
        }
        value => value.clone(),
    }
}

fn truncate(text: String, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use rand::{RngExt as _, SeedableRng as _, rngs::SmallRng};
    use serde_json::json;

    use super::*;

    fn compared(pairs: &[(Value, &str)]) -> Compared {
        let mut compared = Compared::default();
        for (number, (expected, answer)) in pairs.iter().enumerate() {
            compared
                .add(&number.to_string(), expected, answer, (Some(0.5), None), |_, _| Some(false));
        }
        compared.into_report(None)
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

    #[test]
    fn a_judge_is_asked_about_texts_that_differ_and_what_it_does_not_say_is_in_no_rate() {
        let (mut compared, mut asked) = (Compared::default(), Vec::new());
        let mut add = |expected: Value, answer: &str, said: Option<bool>| {
            compared.add("a", &expected, answer, (Some(0.5), Some(3.0)), |one, other| {
                asked.push(format!("{one}/{other}"));
                said
            });
        };
        add(json!("at noon"), "12 o'clock", Some(true));
        add(json!("at noon"), "\"never\"", Some(false));
        add(json!("at noon"), "perhaps", None);
        add(json!("at noon"), "at  noon", None);
        add(json!({"tide": "ebb"}), r#"{"tide": "flood"}"#, None);
        assert_eq!(asked, ["at noon/12 o'clock", "at noon/never", "at noon/perhaps"]);
        let judge = "a:judge".parse().unwrap();
        let Compared { agreement, disagreements, .. } = compared.into_report(Some(&judge));
        assert_eq!(agreement.documents, Rate { agreed: 2, compared: 4 });
        assert_eq!((agreement.unjudged, disagreements.len()), (1, 2));
        assert_eq!(agreement.each_document().unwrap(), "a document: $0.5000, 3.0 s");
        assert_eq!(
            agreement.notes(),
            [
                "compared: fields by their values, and what whole answers say, as a:judge judges it",
                "answers that were not judged, and are in no figure: 1",
            ]
        );
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

    /// Of three fields with known rates, and of all of them together.
    #[test]
    fn the_interval_holds_the_truth_in_95_of_100_runs_of_300_answers() {
        const SEEDS: u64 = 1_000;
        let truth = [("date", 0.97), ("due", 0.7), ("total", 0.8)];
        let right = json!({"date": "2026-03-01", "due": "2026-03-31", "total": 119.0});
        let all: f64 = truth.iter().map(|(_, rate)| rate).product();
        let mut held: BTreeMap<&str, u32> = BTreeMap::new();
        for seed in 0..SEEDS {
            let (mut chance, mut compared) = (SmallRng::seed_from_u64(seed), Compared::default());
            for number in 0..300 {
                let mut answer = right.clone();
                for (field, rate) in truth {
                    if !chance.random_bool(rate) {
                        answer[field] = json!("wrong");
                    }
                }
                compared.add(
                    &number.to_string(),
                    &right,
                    &answer.to_string(),
                    (None, None),
                    |_, _| None,
                );
            }
            let Agreement { documents, fields, .. } = compared.agreement;
            let rates = truth.map(|(field, rate)| (field, rate, fields[field].rate));
            for (field, rate, found) in rates.into_iter().chain([("all fields", all, documents)]) {
                let [from, to] = found.interval();
                *held.entry(field).or_default() += u32::from(from <= rate && rate <= to);
            }
        }
        println!("of {SEEDS} intervals hold the truth: {held:?}");
        assert!(held.len() == 4 && held.values().all(|it| (930..=970).contains(it)), "{held:?}");
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
