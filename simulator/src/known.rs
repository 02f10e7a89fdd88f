//! Documents whose right answer is known: a model answers it, or makes a mistake as often as it is
//! configured to. Asked in other words, it draws anew. Where the schema asks for evidence too, it quotes
//! the document for each field, or makes a quote up as often as it is configured to.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{call::Call, config::Config, rng, value::ConfigError};

/// A document, and what is right of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Known {
    /// The documents that hold this text.
    pub contains: String,
    /// The answer, as JSON.
    pub answer: String,
    /// What the document says about a field of the answer, word for word.
    #[serde(default)]
    pub quotes: BTreeMap<String, String>,
}

impl Known {
    pub(crate) fn check(&self, key: &str) -> Result<(), ConfigError> {
        let is_object = serde_json::from_str::<Value>(&self.answer).is_ok_and(|it| it.is_object());
        match is_object {
            true => Ok(()),
            false => Err(ConfigError::invalid(format!("{key}.answer"), "it is a JSON object")),
        }
    }
}

/// The answer to a question about a known document. A judge says whether the
/// answer that it is shown is right.
pub(crate) fn answer(call: &Call, schema: &Value, config: &Config) -> Option<String> {
    let document = call.document();
    let known = config.known.iter().find(|known| document.contains(&known.contains))?;
    let truth: Value = serde_json::from_str(&known.answer).ok()?;
    let draw = |what: u64| rng::draw(&[config.seed, call.hash, rng::hash(&call.model), what]);
    let rate = config.error_rates.get(&call.model).copied().unwrap_or_default();
    let errs = rng::uniform(draw(0xe0)) < rate;
    if schema.pointer("/properties/passed").is_some() {
        let (_, given) = call.prompt.split_once("<answer>")?;
        let (given, _) = given.split_once("</answer>")?;
        let is_right = serde_json::from_str(given.trim()).is_ok_and(|given: Value| given == truth);
        let reason =
            if is_right { "Each field is as the document has it." } else { "A field differs." };
        return Some(json!({"passed": is_right != errs, "reason": reason}).to_string());
    }
    let mut answer = truth;
    if errs && let Some(fields) = answer.as_object_mut().filter(|fields| !fields.is_empty()) {
        let place = usize::try_from(draw(0xe1) % fields.len() as u64).unwrap_or_default();
        if let Some((_, field)) = fields.iter_mut().nth(place) {
            *field = wrong(field);
        }
    }
    let Some(fields) = fields_with_quotes(schema) else { return Some(answer.to_string()) };
    let rate = config.invented_quotes.get(&call.model).copied().unwrap_or_default();
    let quote = |field: &String| {
        let quote = known.quotes.get(field)?;
        let is_invented = rng::uniform(draw(rng::hash(field))) < rate;
        Some(json!([if is_invented { invented(quote) } else { quote.clone() }]))
    };
    let evidence: Map<String, Value> =
        fields.keys().map(|field| (field.clone(), quote(field).unwrap_or(json!([])))).collect();
    Some(json!({"answer": answer, "evidence": evidence}).to_string())
}

/// The fields for which a schema of an answer and its evidence wants quotes.
fn fields_with_quotes(schema: &Value) -> Option<&Map<String, Value>> {
    schema.pointer("/properties/answer")?;
    schema.pointer("/properties/evidence/properties")?.as_object()
}

/// A quote that is close to a true one: its last digit is another, or it has one word more.
fn invented(quote: &str) -> String {
    let digit = quote.char_indices().rev().find_map(|(at, sign)| Some((at, sign.to_digit(10)?)));
    match digit {
        Some((at, digit)) => format!("{}{}{}", &quote[..at], (digit + 1) % 10, &quote[at + 1..]),
        None => format!("{quote} & Sons"),
    }
}

/// A wrong value: ten more, another currency, the year after, another name.
fn wrong(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64().unwrap_or_default() + 10.0),
        Value::String(text) if text == "EUR" => json!("CHF"),
        Value::String(text) if text.len() == 3 => json!("EUR"),
        Value::String(text) => {
            let year = text.get(..4).and_then(|year| year.parse::<u32>().ok());
            let rest = text.get(4..).filter(|rest| rest.starts_with('-'));
            match year.zip(rest) {
                Some((year, rest)) => json!(format!("{}{rest}", year + 1)),
                None => json!(format!("{text} & Sons")),
            }
        }
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Prompt;

    const TRUTH: &str = r#"{"currency":"EUR","date":"2026-03-01","net":100.0}"#;

    fn answered(words: &str, schema: &Value, rate: f64) -> Value {
        let quotes = [("date", "Date: 2026-03-01"), ("currency", "Payable in euros only")];
        let quotes = quotes.map(|(field, quote)| (field.to_owned(), quote.to_owned())).into();
        let config = Config {
            known: vec![Known { contains: "INV-1".into(), answer: TRUTH.into(), quotes }],
            error_rates: [("m".to_owned(), rate)].into(),
            invented_quotes: [("m".to_owned(), rate)].into(),
            ..Config::default()
        };
        config.check().unwrap();
        let mut prompt = Prompt::default();
        prompt.text("user", &format!("{words}<document>Invoice INV-1</document>"));
        let call = Call::new("m", 500, None, prompt);
        serde_json::from_str(&answer(&call, schema, &config).unwrap()).unwrap()
    }

    #[test]
    fn a_model_errs_as_often_as_it_is_said_to() {
        let (schema, truth) = (json!({}), serde_json::from_str::<Value>(TRUTH).unwrap());
        assert_eq!(answered("", &schema, 0.0), truth);
        let wrong = (0..1_000).filter(|n| answered(&n.to_string(), &schema, 0.3) != truth).count();
        assert!((250..=350).contains(&wrong), "{wrong}");
    }

    #[test]
    fn quotes_are_true_or_made_up_as_often_as_it_is_said() {
        let list = json!({"type": "array", "items": {"type": "string"}});
        let evidence = json!({"properties": {"date": list, "currency": list, "net": list}});
        let schema = json!({"properties": {"answer": {"type": "object"}, "evidence": evidence}});
        let both = answered("", &schema, 0.0);
        assert_eq!(both["answer"], serde_json::from_str::<Value>(TRUTH).unwrap());
        let quotes =
            json!({"date": ["Date: 2026-03-01"], "currency": ["Payable in euros only"], "net": []});
        assert_eq!(both["evidence"], quotes);
        let all = answered("", &schema, 1.0)["evidence"].clone();
        assert_eq!(
            (&all["date"][0], &all["currency"][0]),
            (&json!("Date: 2026-03-02"), &json!("Payable in euros only & Sons"))
        );
        let is_invented = |n: usize| {
            let both = answered(&n.to_string(), &schema, 0.3);
            both["evidence"]["date"] != quotes["date"]
        };
        let invented = (0..1_000).filter(|n| is_invented(*n)).count();
        assert!((250..=350).contains(&invented), "{invented}");
    }

    #[test]
    fn a_judge_says_whether_an_answer_is_right() {
        let schema = json!({"properties": {"passed": {"type": "boolean"}}});
        let judged =
            |answer: &str| answered(&format!("<answer>\n{answer}\n</answer>"), &schema, 0.0);
        assert_eq!(judged(TRUTH)["passed"], json!(true));
        assert_eq!(judged(&TRUTH.replace("EUR", "CHF"))["passed"], json!(false));
    }
}
