//! One prompt on each line, one answer on each line.

use std::{
    io::{self, BufRead, Write},
    thread,
};

use anyhow::Context;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::question::{Output, Question, answer, unless_closed};

/// Reads the lines of stdin, in a thread that ends with this process.
pub(super) fn read_lines() -> mpsc::Receiver<anyhow::Result<Question<()>>> {
    let (sender, lines) = mpsc::channel(64);
    thread::spawn(move || {
        for (number, line) in (1..).zip(io::stdin().lock().split(b'\n')) {
            let line = line.with_context(|| format!("line {number} of stdin cannot be read"));
            let asked = line.map(|line| Question {
                number,
                context: (),
                prompt: read_prompt(number, line),
            });
            if sender.blocking_send(asked).is_err() {
                return;
            }
        }
    });
    lines
}

/// Reads the prompt of a line, without a byte-order mark at the beginning of the first.
///
/// # Errors
/// The line is not UTF-8.
fn read_prompt(number: u64, line: Vec<u8>) -> Result<String, String> {
    let line = String::from_utf8(line).map_err(|_| "the line is not UTF-8".to_owned())?;
    let line = line.strip_suffix('\r').unwrap_or(&line);
    let mark = if number == 1 { "\u{feff}" } else { "" };
    Ok(line.strip_prefix(mark).unwrap_or(line).to_owned())
}

/// Writes one line of output for each line of input.
#[derive(Debug)]
pub(super) struct Lines {
    /// Whether each line is the whole outcome as JSON.
    pub(super) as_json: bool,
}

impl Output for Lines {
    type Context = ();

    const UNIT: &'static str = "line";

    fn write(
        &mut self,
        number: u64,
        (): (),
        outcome: Result<Value, String>,
    ) -> anyhow::Result<bool> {
        let line = format_outcome(number, outcome, self.as_json);
        let mut stdout = io::stdout().lock();
        unless_closed(writeln!(stdout, "{line}").and_then(|()| stdout.flush()))
    }
}

/// An outcome on one line.
fn format_outcome(number: u64, outcome: Result<Value, String>, as_json: bool) -> String {
    if as_json {
        return match outcome {
            Ok(Value::Object(mut fields)) => {
                fields.insert("line".to_owned(), number.into());
                Value::from(fields).to_string()
            }
            Ok(other) => json!({ "line": number, "answer": other }).to_string(),
            Err(why) => json!({ "line": number, "failed": why }).to_string(),
        };
    }
    let Ok(outcome) = outcome else { return String::new() };
    answer(&outcome).replace("\r\n", "\n").replace(['\n', '\r'], "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_at_the_beginning_is_not_asked() {
        let prompt = |number, line: &str| read_prompt(number, line.as_bytes().to_vec()).unwrap();
        assert_eq!(["\u{feff}Why?", "Why?", "Why?\r"].map(|line| prompt(1, line)), ["Why?"; 3]);
        assert_eq!(prompt(2, "\u{feff}Why?"), "\u{feff}Why?");
    }

    #[test]
    fn a_line_in_another_encoding_fails_alone() {
        let refused = read_prompt(7, b"Gr\xfc\xdfe".to_vec()).unwrap_err();
        assert_eq!(refused, "the line is not UTF-8");
    }

    #[test]
    fn an_answer_stays_on_its_line() {
        let answer = |text: &str| format_outcome(1, Ok(json!({ "answer": text })), false);
        assert_eq!(answer("one\ntwo\r\nthree"), "one\\ntwo\\nthree");
        assert_eq!(format_outcome(7, Err("no".to_owned()), false), "");
        let whole =
            |outcome| serde_json::from_str::<Value>(&format_outcome(7, outcome, true)).unwrap();
        assert_eq!(whole(Err("no".to_owned())), json!({ "line": 7, "failed": "no" }));
        assert_eq!(whole(Ok(json!({ "answer": "a" }))), json!({ "line": 7, "answer": "a" }));
    }
}
