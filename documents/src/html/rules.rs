//! Rules of a page's own style sheets, with their weights.

use std::collections::{HashMap, HashSet};

use scraper::{Html, Selector};

use super::{
    cost::Walks,
    css::{find_closing_brace, find_outside, replace_variables, split_outside},
    declarations::{Declaration, Property, Value, parse_declarations},
    last_part::LastPart,
    media,
};

/// Deepest nesting of rules.
const MAX_NESTING: usize = 8;

/// Most selectors of a rule that are combined with those of a nested rule.
const MAX_SELECTORS: usize = 20;

/// Most bytes of a rule's combined selectors: each `&` repeats the outer ones.
const MAX_SELECTOR_BYTES: usize = 4 << 10;

/// Returns the style sheet at an address, if it is part of the document.
pub(crate) type Linked<'s> = &'s dyn Fn(&str) -> Option<String>;

/// The value of greatest weight for each property of an element.
pub(super) type Style = HashMap<Property, (Weight, Value)>;

/// Returns the value of a property that is kept as a word.
pub(super) fn word_value(style: &Style, property: Property) -> Option<&str> {
    match style.get(&property) {
        Some((_, Value::Word(word))) => Some(word),
        _ => None,
    }
}

/// Weight of a declaration, compared field by field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Weight {
    pub(super) important: bool,
    /// Whether it stands in the element's `style` attribute.
    pub(super) inline: bool,
    /// Rank of its `@layer`; without one it has the greatest weight. Of important declarations it
    /// is the other way round.
    pub(super) layer: usize,
    /// Counts of ids; of classes, attributes and states; of tags.
    pub(super) specificity: [usize; 3],
    pub(super) order: usize,
}

/// A declaration for the elements of a selector.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) selector: Selector,
    pub(super) target: Target,
    /// A class or id that an element needs to match.
    pub(super) name: Option<String>,
    /// The tag that an element needs to match.
    pub(super) tag: Option<String>,
    pub(super) walks: Walks,
    pub(super) declaration: Declaration,
    pub(super) weight: Weight,
}

/// The box of an element that a rule is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    Element,
    Before,
    After,
}

/// Rules of a page's own style sheets with properties that are read here.
#[derive(Debug, Default)]
pub(super) struct Rules {
    pub(super) rules: Vec<Rule>,
    /// Whether rules beyond the limits above were left out.
    pub(super) is_cut: bool,
    /// Whether a linked style sheet is missing.
    pub(super) is_incomplete: bool,
    /// Animations that end with their element in sight.
    pub(super) fade_ins: HashSet<String>,
    /// Ranks of layers by their names.
    layers: HashMap<String, usize>,
    /// Values of variables; `None` if a value depends on the element.
    variables: HashMap<String, Option<String>>,
}

/// The declarations of a rule, before variables are replaced.
struct Block {
    selectors: String,
    body: String,
    layer: usize,
}

/// The rules around a rule.
#[derive(Clone, Copy)]
struct Around<'a> {
    selectors: &'a str,
    layer: &'a str,
    depth: usize,
}

impl Rules {
    pub(super) fn read(page: &Html, linked: Linked<'_>) -> Self {
        let (mut rules, mut blocks) = (Self::default(), Vec::new());
        let Ok(sheets) = Selector::parse("style, link[rel~=stylesheet]") else { return rules };
        for sheet in page.select(&sheets) {
            // For print, speech or narrow screens.
            if sheet.attr("media").is_some_and(|media| !media::holds(media)) {
                continue;
            }
            let text = match sheet.value().name() {
                "link" => linked(sheet.attr("href").unwrap_or_default()),
                _ => Some(sheet.text().collect::<String>()),
            };
            let Some(text) = text else {
                rules.is_incomplete = true;
                continue;
            };
            // Old pages hide their sheets from older browsers in a comment of HTML.
            let text = without_comments(&text.replace("<!--", "").replace("-->", ""));
            let around = Around { selectors: "", layer: "", depth: 0 };
            add_sheet(&text, around, &mut rules, &mut blocks);
        }
        // A style attribute may define a variable for some elements alone.
        if let Ok(own) = Selector::parse("[style*=\"--\"]") {
            for style in page.select(&own).filter_map(|element| element.attr("style")) {
                rules.define("", style);
            }
        }
        for block in &blocks {
            rules.define(&block.selectors, &block.body);
        }
        for block in &blocks {
            add_rules(block, &mut rules);
        }
        rules
    }

    /// Returns a style with its variables replaced. `own` is the style that may define them itself.
    pub(super) fn resolve_variables<'s>(
        &self,
        style: &'s str,
        own: &str,
    ) -> std::borrow::Cow<'s, str> {
        replace_variables(style, |name| {
            if let Some((_, value)) = variables(own).filter(|(known, _)| *known == name).last() {
                return Ok(Some(value.to_owned()));
            }
            match self.variables.get(name) {
                Some(Some(value)) => Ok(Some(value.clone())),
                Some(None) => Err(()),
                None => Ok(None),
            }
        })
    }

    /// Keeps the variables that a rule defines.
    fn define(&mut self, selectors: &str, body: &str) {
        let is_for_all = split_outside(selectors, ',')
            .any(|it| matches!(it.trim(), ":root" | "html" | "body" | "*" | ":host"));
        for (name, value) in variables(body) {
            let value = is_for_all.then(|| value.to_owned());
            match self.variables.get_mut(name) {
                Some(known) if *known != value => *known = None,
                Some(_) => {}
                None => drop(self.variables.insert(name.to_owned(), value)),
            }
        }
    }

    /// Returns the rank of a layer; ranks rise in the order in which the names appear.
    fn layer(&mut self, name: &str) -> usize {
        if name.is_empty() {
            return usize::MAX;
        }
        let next = self.layers.len();
        *self.layers.entry(name.to_owned()).or_insert(next)
    }
}

/// Returns the variables that a style defines.
fn variables(style: &str) -> impl Iterator<Item = (&str, &str)> {
    let has_some = style.contains("--");
    let parts = has_some.then(|| split_outside(style, ';')).into_iter().flatten();
    parts.filter_map(|part| {
        let (name, value) = part.split_once(':')?;
        Some((name.trim(), value.trim())).filter(|(name, _)| name.starts_with("--"))
    })
}

/// Adds the blocks of a sheet, including nested ones (`@media`, `@layer`, rules within rules).
fn add_sheet(sheet: &str, around: Around<'_>, rules: &mut Rules, blocks: &mut Vec<Block>) {
    let (mut rest, mut own) = (sheet, String::new());
    while let Some(open) = find_outside(rest, &['{', ';']) {
        let (head, body) = rest.split_at(open);
        // A declaration, or `@import …;` and the like.
        if let Some(after) = body.strip_prefix(';') {
            if let Some(names) = head.trim_start().strip_prefix("@layer ") {
                for name in names.split(',') {
                    rules.layer(&within_layer(around.layer, name));
                }
            }
            own.push_str(head);
            own.push(';');
            rest = after;
            continue;
        }
        let end = find_closing_brace(body);
        let (inside, head) = (&body[1..end], head.trim());
        rest = body.get(end + 1..).unwrap_or_default();
        if around.depth >= MAX_NESTING {
            rules.is_cut = true;
            continue;
        }
        let around = Around { depth: around.depth + 1, ..around };
        match head.strip_prefix('@') {
            None => {
                let (selectors, is_cut) = nest_selectors(around.selectors, head);
                rules.is_cut |= is_cut;
                add_sheet(inside, Around { selectors: &selectors, ..around }, rules, blocks);
            }
            Some(at) => add_at_rule(at, inside, around, rules, blocks),
        }
    }
    own.push_str(rest);
    if !around.selectors.is_empty() {
        let layer = rules.layer(around.layer);
        blocks.push(Block { selectors: around.selectors.to_owned(), body: own, layer });
    }
}

/// Adds the blocks of an at-rule, whose text begins behind the `@`.
fn add_at_rule(
    at: &str,
    inside: &str,
    around: Around<'_>,
    rules: &mut Rules,
    blocks: &mut Vec<Block>,
) {
    let (name, condition) = at.split_at(at.find([' ', '(']).unwrap_or(at.len()));
    let condition = condition.trim();
    match name {
        "media" if media::holds(condition) => add_sheet(inside, around, rules, blocks),
        "supports" if media::is_supported(condition) => add_sheet(inside, around, rules, blocks),
        "layer" => {
            let name = match condition {
                // Each layer without a name is one of its own.
                "" => format!("{} {}", around.layer, rules.layers.len()),
                name => within_layer(around.layer, name),
            };
            rules.layer(&name);
            add_sheet(inside, Around { layer: &name, ..around }, rules, blocks);
        }
        "scope" => {
            let root = condition.strip_prefix('(').and_then(|it| it.strip_suffix(')'));
            // With a limit (`to`) it depends on more than is read here.
            if let Some(root) = root.filter(|root| find_outside(root, &[')']).is_none()) {
                let (selectors, is_cut) = nest_selectors(around.selectors, root);
                rules.is_cut |= is_cut;
                let inside = inside.replace(":scope", "&");
                add_sheet(&inside, Around { selectors: &selectors, ..around }, rules, blocks);
            }
        }
        "keyframes" | "-webkit-keyframes" if is_fade_in(inside) => {
            rules.fade_ins.insert(condition.to_ascii_lowercase());
        }
        _ => {}
    }
}

fn within_layer(outer: &str, name: &str) -> String {
    if outer.is_empty() { name.trim().to_owned() } else { format!("{outer}.{}", name.trim()) }
}

/// Whether the last frame of an animation shows its element.
fn is_fade_in(frames: &str) -> bool {
    let mut rest = frames;
    while let Some(open) = find_outside(rest, &['{']) {
        let (head, body) = rest.split_at(open);
        let end = find_closing_brace(body);
        let is_last = head.split(',').any(|it| matches!(it.trim(), "to" | "100%"));
        let shows = || {
            parse_declarations(&body[1..end]).any(|it| {
                it.property == Property::Other("opacity") && it.value == Value::Effective(false)
            })
        };
        if is_last && shows() {
            return true;
        }
        rest = body.get(end + 1..).unwrap_or_default();
    }
    false
}

/// Combines a rule's selectors with those of the rule around it. Also returns whether some are left out.
fn nest_selectors(parent: &str, selectors: &str) -> (String, bool) {
    if parent.is_empty() {
        return (selectors.to_owned(), false);
    }
    let mut all = String::new();
    for (at, outer) in split_outside(parent, ',').map(str::trim).enumerate() {
        for (within, inner) in split_outside(selectors, ',').map(str::trim).enumerate() {
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

fn add_rules(block: &Block, rules: &mut Rules) {
    let body = rules.resolve_variables(&block.body, &block.body);
    let declarations: Vec<_> = parse_declarations(&body).collect();
    if declarations.is_empty() {
        return;
    }
    for one in split_outside(&block.selectors, ',') {
        let (one, target) = split_target(one.trim());
        let Ok(selector) = Selector::parse(&one) else { continue };
        for declaration in &declarations {
            let layer = block.layer;
            let weight = Weight {
                important: declaration.important,
                inline: false,
                layer: if declaration.important { usize::MAX - layer } else { layer },
                specificity: specificity(&one),
                order: rules.rules.len(),
            };
            let (selector, declaration) = (selector.clone(), declaration.clone());
            let last = LastPart::of_selector(&one);
            rules.rules.push(Rule {
                selector,
                target,
                name: last.name(),
                tag: last.tag(),
                walks: Walks::of_selector(&one),
                declaration,
                weight,
            });
        }
    }
}

/// Splits a selector into that of its element and the box that it is for.
fn split_target(selector: &str) -> (String, Target) {
    let boxes = [("before", Target::Before), ("after", Target::After)];
    let found = boxes.into_iter().find_map(|(name, target)| {
        let element = selector.strip_suffix(name)?.strip_suffix(':')?;
        Some((element.strip_suffix(':').unwrap_or(element), target))
    });
    match found {
        Some((element, target))
            if element.is_empty() || element.ends_with([' ', '>', '+', '~']) =>
        {
            (format!("{element}*"), target)
        }
        Some((element, target)) => (element.to_owned(), target),
        None => (selector.to_owned(), Target::Element),
    }
}

/// Drops the comments; `/*` in a string or an address without quotes begins none.
fn without_comments(sheet: &str) -> String {
    let (mut kept, mut rest) = (String::with_capacity(sheet.len()), sheet);
    while let Some(at) = rest.find(['/', '"', '\'', '(', '\\']) {
        let (before, token) = rest.split_at(at);
        kept.push_str(before);
        if let Some(comment) = token.strip_prefix("/*") {
            rest = comment.split_once("*/").map_or("", |(_, rest)| rest);
            continue;
        }
        let is_address = |before: &str| before.to_ascii_lowercase().ends_with("url");
        let end = match token.as_bytes()[0] {
            b'\\' => token.char_indices().nth(2).map_or(token.len(), |(at, _)| at),
            // A string ends with its line.
            b'"' => end_of_token(token, &['"', '\n']),
            b'\'' => end_of_token(token, &['\'', '\n']),
            b'(' if is_address(before) && !token[1..].trim_start().starts_with(['"', '\'']) => {
                end_of_token(token, &[')'])
            }
            _ => 1,
        };
        kept.push_str(&token[..end]);
        rest = &token[end..];
    }
    kept + rest
}

/// Returns the index behind the first of these signs after the first one that is not escaped.
fn end_of_token(token: &str, signs: &[char]) -> usize {
    let mut is_escaped = false;
    let end = token.char_indices().skip(1).find(|(_, c)| {
        let is_end = !is_escaped && signs.contains(c);
        is_escaped = !is_escaped && *c == '\\';
        is_end
    });
    end.map_or(token.len(), |(at, _)| at + 1)
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
