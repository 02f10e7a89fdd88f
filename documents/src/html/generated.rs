//! Text that style sheets put before and after the content of an element.

use std::collections::HashMap;

use scraper::node::Element;

use super::{
    css::unescape,
    declarations::Property,
    lists::number_in_style,
    rules::{Style, word_value},
};

/// Most counters of a page.
const MAX_COUNTERS: usize = 1_000;

/// Longest generated text in bytes.
const MAX_BYTES: usize = 4 << 10;

/// Counters of a page at an element. Each name has one counter; nested ones are not told apart.
#[derive(Debug, Default)]
pub(super) struct Counters(HashMap<String, i64>);

impl Counters {
    /// Changes the counters as a style asks.
    pub(super) fn count(&mut self, style: &Style) {
        for (name, value) in counter_changes(style, "reset", 0) {
            if self.0.len() < MAX_COUNTERS {
                self.0.insert(name.to_owned(), value);
            }
        }
        for (name, value) in counter_changes(style, "increment", 1) {
            if self.0.len() < MAX_COUNTERS || self.0.contains_key(name) {
                let counter = self.0.entry(name.to_owned()).or_default();
                *counter = counter.saturating_add(value);
            }
        }
    }
}

/// Returns the counters that a style changes, each with its number or the usual one.
fn counter_changes<'s>(style: &'s Style, kind: &'static str, usual: i64) -> Vec<(&'s str, i64)> {
    let words = word_value(style, Property::Counter(kind)).unwrap_or_default().split_whitespace();
    let mut changes: Vec<(&str, i64)> = Vec::new();
    for word in words.filter(|word| *word != "none") {
        match (word.parse(), changes.last_mut()) {
            (Ok(number), Some((_, value))) => *value = number,
            _ => changes.push((word, usual)),
        }
    }
    changes
}

/// Returns the text of a `content` property: strings, attributes and counters. Letters of private use are
/// icons and are left out. Returns `None` if it has a counter that cannot be shown.
pub(super) fn generated_text(
    content: &str,
    element: &Element,
    counters: &Counters,
) -> Option<String> {
    let (mut text, mut rest) = (String::new(), content.trim());
    // Behind a slash is the text for screen readers.
    while !rest.is_empty() && !rest.starts_with('/') && text.len() < MAX_BYTES {
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
        let length = match quote {
            Some(quote) => {
                let end = end_of_string(rest, quote);
                let inside = &rest[1..end];
                text.push_str(&unescape(&inside.replace("\\\n", "")).replace('\n', " "));
                (end + 1).min(rest.len())
            }
            None => {
                let end = rest.find(|c: char| c.is_whitespace() || matches!(c, '(' | '"' | '\''));
                let (name, behind) = rest.split_at(end.unwrap_or(rest.len()));
                let close = behind.starts_with('(').then(|| behind.find(')')).flatten();
                let inside = close.map_or("", |close| behind[1..close].trim());
                match name.to_ascii_lowercase().as_str() {
                    "attr" => text.push_str(element.attr(inside).unwrap_or_default()),
                    "counter" => {
                        let inside = inside.to_ascii_lowercase();
                        let (name, style) = inside.split_once(',').unwrap_or((&inside, "decimal"));
                        let value = counters.0.get(name.trim()).copied().unwrap_or_default();
                        text.push_str(&number_in_style(value, style.trim())?);
                    }
                    "counters" => return None,
                    _ => {}
                }
                (name.len() + close.map_or(0, |close| close + 1)).max(1)
            }
        };
        rest = rest.get(length..).unwrap_or_default().trim_start();
    }
    let is_icon = |c: char| matches!(c, '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..);
    let text: String = text.chars().filter(|c| !is_icon(*c)).collect();
    Some(if text.trim().is_empty() { String::new() } else { text })
}

/// Returns the index of the quote that ends the string at the start of a text, or the length.
fn end_of_string(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    let end = text.char_indices().skip(1).find(|(_, c)| {
        let is_end = *c == quote && !is_escaped;
        is_escaped = *c == '\\' && !is_escaped;
        is_end
    });
    end.map_or(text.len(), |(at, _)| at)
}
