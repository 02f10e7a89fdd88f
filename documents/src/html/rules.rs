//! Rules of a page's own style sheets, with their weights.

use scraper::{Html, Selector};

use super::declarations::{Declaration, declarations};

/// Deepest nesting of rules.
const MAX_NESTING: usize = 8;

/// Most selectors of a rule that are combined with those of a nested rule.
const MAX_SELECTORS: usize = 20;

/// Most bytes of a rule's combined selectors: each `&` repeats the outer ones.
const MAX_SELECTOR_BYTES: usize = 4 << 10;

/// Weight of a declaration, compared field by field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Weight {
    pub(super) important: bool,
    /// Whether it stands in the element's `style` attribute.
    pub(super) inline: bool,
    /// Counts of ids; of classes, attributes and states; of tags.
    pub(super) specificity: [usize; 3],
    pub(super) order: usize,
}

/// A declaration for the elements of a selector.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) selector: Selector,
    /// A class or id that an element needs to match.
    pub(super) name: Option<String>,
    pub(super) said: Declaration,
    pub(super) weight: Weight,
}

/// Rules of a page's own style sheets with properties that are read here.
#[derive(Debug, Default)]
pub(super) struct Rules {
    pub(super) rules: Vec<Rule>,
    /// Whether rules beyond the limits above were left out.
    pub(super) is_cut: bool,
}

impl Rules {
    pub(super) fn of(page: &Html) -> Self {
        let mut rules = Self::default();
        let Ok(sheets) = Selector::parse("style") else { return rules };
        for sheet in page.select(&sheets) {
            // For print, speech or narrow screens.
            if sheet.attr("media").is_some_and(|media| !is_for_screens(media)) {
                continue;
            }
            let sheet = without_comments(&sheet.text().collect::<String>());
            of_sheet(&sheet, "", 0, &mut rules);
        }
        rules
    }
}

/// Adds rules, including nested ones (`@media`, `@layer`, rules within rules). `parent` is the selector
/// around them.
fn of_sheet(sheet: &str, parent: &str, depth: usize, rules: &mut Rules) {
    let (mut rest, mut own) = (sheet, String::new());
    while let Some(open) = rest.find(['{', ';']) {
        let (head, body) = rest.split_at(open);
        // A declaration, or `@import …;` and the like.
        if let Some(after) = body.strip_prefix(';') {
            own.push_str(head);
            own.push(';');
            rest = after;
            continue;
        }
        let end = closing(body);
        let (inside, head) = (&body[1..end], head.trim());
        rest = body.get(end + 1..).unwrap_or_default();
        if depth >= MAX_NESTING {
            rules.is_cut = true;
            continue;
        }
        match head.strip_prefix('@') {
            None => {
                let (selectors, is_cut) = within(parent, head);
                rules.is_cut |= is_cut;
                of_sheet(inside, &selectors, depth + 1, rules);
            }
            Some(at) => {
                let (name, condition) = at.split_once([' ', '(']).unwrap_or((at, ""));
                let applies = match name {
                    "media" => is_for_screens(condition),
                    "supports" | "layer" => true,
                    _ => false,
                };
                if applies {
                    of_sheet(inside, parent, depth + 1, rules);
                }
            }
        }
    }
    own.push_str(rest);
    if !parent.is_empty() {
        add(parent, &own, rules);
    }
}

/// Combines a rule's selectors with those of the rule around it. Also returns whether some are left out.
fn within(parent: &str, selectors: &str) -> (String, bool) {
    if parent.is_empty() {
        return (selectors.to_owned(), false);
    }
    let mut all = String::new();
    for (at, outer) in parent.split(',').map(str::trim).enumerate() {
        for (within, inner) in selectors.split(',').map(str::trim).enumerate() {
            let uses = inner.matches('&').count();
            let bytes = inner.len() + uses.max(1) * outer.len();
            if at.max(within) >= MAX_SELECTORS || all.len() + bytes > MAX_SELECTOR_BYTES {
                return (all, true);
            }
            if !all.is_empty() {
                all.push(',');
            }
            all += &match uses {
                0 => format!("{outer} {inner}"),
                _ => inner.replace('&', outer),
            };
        }
    }
    (all, false)
}

fn add(selectors: &str, body: &str, rules: &mut Rules) {
    let said: Vec<_> = declarations(body).collect();
    if said.is_empty() {
        return;
    }
    for one in selectors.split(',') {
        let Ok(selector) = Selector::parse(one.trim()) else { continue };
        for declaration in &said {
            let weight = Weight {
                important: declaration.important,
                inline: false,
                specificity: specificity(one),
                order: rules.rules.len(),
            };
            let (selector, said) = (selector.clone(), declaration.clone());
            rules.rules.push(Rule { selector, name: name(one), said, weight });
        }
    }
}

/// Returns the index of the brace that closes the first one, or the length.
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

/// Whether a media condition holds for the usual screen.
fn is_for_screens(condition: &str) -> bool {
    let condition = condition.to_ascii_lowercase();
    let narrow = condition.contains("max-width") || condition.contains("max-device-width");
    let other = ["print", "speech", "not "].iter().any(|word| condition.contains(word));
    !narrow && !other
}

/// Returns a class or id required by the last part of a selector.
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

/// Counts ids; classes, attributes and states; tags.
fn specificity(selector: &str) -> [usize; 3] {
    let count = |signs: &[char]| selector.matches(signs).count();
    let tags = selector
        .split(|c: char| c.is_whitespace() || matches!(c, '>' | '+' | '~'))
        .filter(|part| part.starts_with(|c: char| c.is_ascii_alphabetic()))
        .count();
    [count(&['#']), count(&['.', '[', ':']), tags]
}
