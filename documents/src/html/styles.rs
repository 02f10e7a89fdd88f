//! Styles, as far as they hide: in elements, and in the style sheets that a page brings along.

use std::collections::{HashMap, HashSet};

use ego_tree::NodeId;
use scraper::{ElementRef, Html, Selector};

/// Selectors that are held against elements, in all: a page of many rules and elements must not
/// take minutes.
const MAX_TRIES: usize = 1_000_000;

/// How much a rule weighs against others, and what it says of one property.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Weight {
    important: bool,
    /// In the element itself.
    inline: bool,
    /// Names, classes and tags in the selector.
    specificity: [usize; 3],
    order: usize,
}

#[derive(Debug)]
struct Rule {
    selector: Selector,
    /// A class or id that an element must have to be meant.
    name: Option<String>,
    property: String,
    hides: bool,
    weight: Weight,
}

/// The elements that nobody sees.
pub(super) fn hidden(page: &Html) -> HashSet<NodeId> {
    let mut rules = rules(page);
    if !rules.iter().any(|rule| rule.hides) {
        rules.clear();
    }
    let mut by_name: HashMap<&str, Vec<&Rule>> = HashMap::new();
    for rule in &rules {
        by_name.entry(rule.name.as_deref().unwrap_or_default()).or_default().push(rule);
    }
    let elements = page.tree.nodes().filter_map(ElementRef::wrap);
    let (mut hidden, mut tries) = (HashSet::new(), 0);
    for element in elements {
        let mut said: HashMap<String, (Weight, bool)> = HashMap::new();
        let mut say = |property: &str, weight: Weight, hides: bool| {
            let last = said.entry(property.to_owned()).or_insert((weight, hides));
            if weight >= last.0 {
                *last = (weight, hides);
            }
        };
        let names = element.value().classes().chain(element.value().id()).chain([""]);
        for rule in names.filter_map(|name| by_name.get(name)).flatten() {
            tries += 1;
            if tries <= MAX_TRIES && rule.selector.matches(&element) {
                say(&rule.property, rule.weight, rule.hides);
            }
        }
        for (property, hides, important) in declarations(element.attr("style").unwrap_or_default())
        {
            let weight = Weight { important, inline: true, specificity: [0; 3], order: 0 };
            say(&property, weight, hides);
        }
        if said.values().any(|(_, hides)| *hides) {
            hidden.insert(element.id());
        }
    }
    hidden
}

/// The rules of a page's own style sheets that say something about being seen.
fn rules(page: &Html) -> Vec<Rule> {
    let mut rules = Vec::new();
    let Ok(sheets) = Selector::parse("style") else { return rules };
    for sheet in page.select(&sheets) {
        // For paper, or for a machine that reads aloud.
        if sheet.attr("media").is_some_and(|media| !is_for_screens(media)) {
            continue;
        }
        of_sheet(&without_comments(&sheet.text().collect::<String>()), &mut rules);
    }
    rules
}

fn of_sheet(sheet: &str, rules: &mut Vec<Rule>) {
    let mut rest = sheet;
    while let Some(open) = rest.find(['{', ';']) {
        let (head, body) = rest.split_at(open);
        // `@import …;` and the like.
        if let Some(after) = body.strip_prefix(';') {
            rest = after;
            continue;
        }
        let end = closing(body);
        let (inside, head) = (&body[1..end], head.trim());
        rest = body.get(end + 1..).unwrap_or_default();
        match head.strip_prefix('@') {
            None => add(head, inside, rules),
            Some(at) => {
                let (name, condition) = at.split_once([' ', '(']).unwrap_or((at, ""));
                let applies = match name {
                    "media" => is_for_screens(condition),
                    "supports" | "layer" => true,
                    _ => false,
                };
                // Nested once: pages that nest deeper are left as they are.
                if applies && !inside.contains('@') {
                    of_sheet(inside, rules);
                }
            }
        }
    }
}

fn add(selectors: &str, body: &str, rules: &mut Vec<Rule>) {
    let said: Vec<_> = declarations(body).collect();
    if said.is_empty() {
        return;
    }
    for one in selectors.split(',') {
        let Ok(selector) = Selector::parse(one.trim()) else { continue };
        for (property, hides, important) in &said {
            let weight = Weight {
                important: *important,
                inline: false,
                specificity: specificity(one),
                order: rules.len(),
            };
            let (selector, property) = (selector.clone(), property.clone());
            rules.push(Rule { selector, name: name(one), property, hides: *hides, weight });
        }
    }
}

/// Where the brace that this begins with is closed, or the end.
fn closing(body: &str) -> usize {
    let mut depth = 0_usize;
    for (at, c) in body.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    body.len()
}

fn without_comments(sheet: &str) -> String {
    let mut parts = sheet.split("/*");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| all + part.split_once("*/").map_or("", |(_, rest)| rest))
}

/// Whether what a medium is asked to be is what most people read with.
fn is_for_screens(condition: &str) -> bool {
    let condition = condition.to_ascii_lowercase();
    let narrow = condition.contains("max-width") || condition.contains("max-device-width");
    let other = ["print", "speech", "not "].iter().any(|word| condition.contains(word));
    !narrow && !other
}

/// The class or id that the last part of a selector asks for.
fn name(selector: &str) -> Option<String> {
    let last = selector
        .trim()
        .rsplit(|c: char| c.is_whitespace() || matches!(c, '>' | '+' | '~'))
        .next()
        .filter(|last| !last.contains(['(', '[', '\\']))?;
    let (_, name) = last.split_once(['.', '#'])?;
    let end = name.find(['.', '#', ':']).unwrap_or(name.len());
    Some(name[..end].to_owned()).filter(|name| !name.is_empty())
}

/// Names; classes, attributes and states; tags.
fn specificity(selector: &str) -> [usize; 3] {
    let count = |signs: &[char]| selector.matches(signs).count();
    let tags = selector
        .split(|c: char| c.is_whitespace() || matches!(c, '>' | '+' | '~'))
        .filter(|part| part.starts_with(|c: char| c.is_ascii_alphabetic()))
        .count();
    [count(&['#']), count(&['.', '[', ':']), tags]
}

/// What a style says of properties that can hide: the property, whether it does, whether that is
/// important.
fn declarations(style: &str) -> impl Iterator<Item = (String, bool, bool)> {
    style.split(';').filter_map(|rule| {
        let (name, value) = rule.split_once(':')?;
        let name = name.trim().to_ascii_lowercase();
        let value = value.trim().to_ascii_lowercase();
        let important = value.ends_with("!important");
        let value = value.trim_end_matches("!important").trim_end();
        let number = || {
            let end = value.find(|c: char| !matches!(c, '0'..='9' | '.' | '-'));
            value[..end.unwrap_or(value.len())].parse::<f64>().ok()
        };
        let hides = match name.as_str() {
            "display" => value == "none",
            "visibility" => matches!(value, "hidden" | "collapse"),
            "opacity" | "font-size" => number() == Some(0.0),
            "left" | "top" | "text-indent" | "margin-left" => {
                value.ends_with("px") && number().is_some_and(|pixels| pixels <= -999.0)
            }
            _ => return None,
        };
        Some((name, hides, important))
    })
}
