//! Visibility and look of a page's elements, from its own style sheets and attributes.

use std::collections::{HashMap, HashSet};

use ego_tree::NodeId;
use scraper::{ElementRef, Html, node::Element};

use super::{
    color_notation::parse_color,
    cost::{StepBudget, Walks},
    declarations::{Declaration, Property, Value, is_size_of_nothing, parse_declarations},
    flow::Flows,
    generated::{Counters, generated_text},
    rules::{Linked, Rule, Rules, Style, Target, Weight, word_value},
};
use crate::colors::{Background, Rgb, WHITE};

/// Styles of a page's elements, as far as their text depends on them.
#[derive(Debug, Default)]
pub(super) struct ElementStyles {
    /// Elements that are hidden with their content.
    pub(super) hidden: HashSet<NodeId>,
    /// Elements whose own words are not seen, by their color or `visibility`.
    pub(super) hidden_words: HashSet<NodeId>,
    /// Elements that are struck out.
    pub(super) struck: HashSet<NodeId>,
    /// Elements that a style shows although an attribute hides them.
    pub(super) shown: HashSet<NodeId>,
    /// Elements whose own words keep their lines, and whether spaces collapse in these.
    pub(super) lines: HashMap<NodeId, bool>,
    /// Text that styles put before and after the content of an element.
    pub(super) generated: HashMap<NodeId, [String; 2]>,
    /// Number of texts that could not be made.
    pub(super) not_generated: usize,
    pub(super) flows: Flows,
    /// Elements whose own words a style shows in another case.
    pub(super) cases: HashMap<NodeId, Case>,
    /// Captions below their table.
    pub(super) low_captions: HashSet<NodeId>,
    /// List styles of elements.
    pub(super) markers: HashMap<NodeId, String>,
    /// Whether some rules were not applied because there were too many.
    pub(super) is_incomplete: bool,
}

/// The case of letters that a style shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    Upper,
    Lower,
    Capitalized,
}

impl Case {
    fn by_name(name: &str) -> Option<Self> {
        match name {
            "uppercase" => Some(Self::Upper),
            "lowercase" => Some(Self::Lower),
            "capitalize" => Some(Self::Capitalized),
            _ => None,
        }
    }

    pub(super) fn apply_to(self, text: &str) -> String {
        match self {
            Self::Upper => text.to_uppercase(),
            Self::Lower => text.to_lowercase(),
            Self::Capitalized => {
                let words = text.split_inclusive(char::is_whitespace).map(|word| {
                    let mut letters = word.chars();
                    let first = letters.next().map(char::to_uppercase);
                    first.into_iter().flatten().chain(letters).collect::<String>()
                });
                words.collect()
            }
        }
    }
}

/// The look of an element's words, as far as it may hide or change them.
#[derive(Debug, Clone, Copy)]
struct Paint {
    color: Option<Rgb>,
    /// Whether the color is fully transparent.
    is_clear: bool,
    background: Background,
    /// Whether the letters have no size.
    is_tiny: bool,
    /// Whether something other than the color shows the words.
    is_shown_otherwise: bool,
    /// The outermost element whose `visibility` hides the words.
    hidden_by: Option<NodeId>,
    /// Whether the words of a drawing are filled, and whether they have an outline.
    is_filled: bool,
    is_stroked: bool,
    /// Whether lines are kept; if so, whether spaces collapse.
    lines: Option<bool>,
    case: Option<Case>,
    /// Whether captions stand below their tables.
    has_low_captions: bool,
}

impl Paint {
    fn on_background(background: Background) -> Self {
        Self {
            color: None,
            is_clear: false,
            is_tiny: false,
            background,
            is_shown_otherwise: false,
            hidden_by: None,
            is_filled: true,
            is_stroked: false,
            lines: None,
            case: None,
            has_low_captions: false,
        }
    }

    /// Applies the size, the color and the background of a style.
    fn apply(&mut self, style: &Style) {
        if let Some(size) = word_value(style, Property::FontSize) {
            self.is_tiny = is_size_of_nothing(size, self.is_tiny);
        }
        for property in [Property::Color, Property::LetterFill] {
            match style.get(&property) {
                Some((_, Value::Color(color))) => (self.color, self.is_clear) = (*color, false),
                Some((_, Value::Clear)) => self.is_clear = true,
                _ => {}
            }
        }
        if let Some((_, Value::Background(background))) = style.get(&Property::Background) {
            self.background = *background;
        }
    }

    fn is_unseen(&self) -> bool {
        let is_same = self.color.is_some_and(|it| self.background.hides(it));
        self.is_tiny || (self.is_clear || is_same) && !self.is_shown_otherwise
    }
}

/// Returns the styles of a page's elements. `linked` returns the style sheets that the page refers to.
pub(super) fn read_element_styles(page: &Html, linked: Linked<'_>) -> ElementStyles {
    let rules = Rules::read(page, linked);
    let mut by_name: HashMap<&str, Vec<&Rule>> = HashMap::new();
    for rule in &rules.rules {
        by_name.entry(rule.name.as_deref().unwrap_or_default()).or_default().push(rule);
    }
    // A missing style sheet may set any background.
    let paper = if rules.is_incomplete { Background::Unknown } else { Background::Plain(WHITE) };
    let (mut styles, mut counters) = (ElementStyles::default(), Counters::default());
    let mut steps = StepBudget::new(page);
    // Paint of each element. A parent comes before its children.
    let mut paints: HashMap<NodeId, Paint> = HashMap::new();
    // Elements hidden by `visibility`, each with the element that hides it; and those of the latter with a
    // visible descendant.
    let (mut hidden_by_visibility, mut with_visible_descendant) = (Vec::new(), HashSet::new());
    for node in page.tree.root().descendants() {
        let Some(element) = ElementRef::wrap(node) else { continue };
        let [style, before, after] = read_styles(element, &rules, &by_name, &mut steps);
        let is = |property| matches!(style.get(&property), Some((_, Value::Effective(true))));
        if hides_element(&style, &rules.fade_ins) {
            styles.hidden.insert(node.id());
        } else if style.contains_key(&Property::Display) && !rules.is_incomplete {
            styles.shown.insert(node.id());
        }
        styles.flows.add(node, element.value(), &style);
        if is(Property::Line) && !matches!(element.value().name(), "del" | "s" | "strike") {
            styles.struck.insert(node.id());
        }
        if let Some(marker) = word_value(&style, Property::Marker) {
            styles.markers.insert(node.id(), marker.to_owned());
        }
        let around = node.parent().and_then(|parent| paints.get(&parent.id()).copied());
        let mut paint = around.unwrap_or_else(|| Paint::on_background(paper));
        if !style.contains_key(&Property::Color) {
            let name = if element.value().name() == "body" { "text" } else { "color" };
            paint.color = color_attribute(element.value(), name).or(paint.color);
        }
        paint.background = background_attribute(element.value()).unwrap_or(paint.background);
        paint.apply(&style);
        paint.is_shown_otherwise |=
            ["clip", "letters"].into_iter().any(|it| is(Property::ShowsThrough(it)));
        if let Some((_, value)) = style.get(&Property::Fill) {
            paint.is_filled = *value == Value::Effective(true);
        }
        if let Some((_, value)) = style.get(&Property::Stroke) {
            paint.is_stroked = *value == Value::Effective(true);
        }
        if let Some(spaces) = word_value(&style, Property::Spaces) {
            paint.lines = match spaces {
                "pre" | "pre-wrap" | "break-spaces" => Some(false),
                "pre-line" => Some(true),
                "inherit" => paint.lines,
                _ => None,
            };
        }
        if let Some(collapses) = paint.lines {
            styles.lines.insert(node.id(), collapses);
        }
        if let Some(case) = word_value(&style, Property::Case).filter(|case| *case != "inherit") {
            paint.case = Case::by_name(case);
        }
        styles.cases.extend(paint.case.map(|case| (node.id(), case)));
        if let Some(side) = word_value(&style, Property::CaptionSide) {
            paint.has_low_captions = matches!(side, "bottom" | "block-end");
        }
        if paint.has_low_captions && element.value().name() == "caption" {
            styles.low_captions.insert(node.id());
        }
        paint.hidden_by = match style.get(&Property::Visibility) {
            Some((_, Value::Effective(true))) => paint.hidden_by.or_else(|| Some(node.id())),
            Some(_) => {
                with_visible_descendant.extend(paint.hidden_by);
                None
            }
            None => paint.hidden_by,
        };
        hidden_by_visibility.extend(paint.hidden_by.map(|hider| (node.id(), hider)));
        let is_outlined = is_drawing(element.value()) && !paint.is_filled && !paint.is_stroked;
        if paint.is_unseen() || is_outlined {
            styles.hidden_words.insert(node.id());
        }
        if !styles.hidden.contains(&node.id()) && !is_replaced(element.value()) {
            counters.count(&style);
            let mut texts = [String::new(), String::new()];
            for (style, text) in [before, after].iter().zip(&mut texts) {
                let mut paint = paint;
                paint.apply(style);
                let is_hidden_by_visibility = match style.get(&Property::Visibility) {
                    Some((_, value)) => *value == Value::Effective(true),
                    None => paint.hidden_by.is_some(),
                };
                let Some(content) = word_value(style, Property::Content) else { continue };
                if word_value(style, Property::Display) != Some("none") {
                    counters.count(style);
                }
                if is_hidden_by_visibility
                    || paint.is_unseen()
                    || hides_element(style, &rules.fade_ins)
                {
                    continue;
                }
                match generated_text(content, element.value(), &counters) {
                    Some(words) => *text = words,
                    None => styles.not_generated += 1,
                }
            }
            if texts.iter().any(|text| !text.is_empty()) {
                styles.generated.insert(node.id(), texts);
            }
        }
        paints.insert(node.id(), paint);
    }
    styles.is_incomplete = rules.is_cut || steps.is_exceeded;
    for (node, hider) in hidden_by_visibility {
        if with_visible_descendant.contains(&hider) {
            styles.hidden_words.insert(node);
        } else if node == hider {
            styles.hidden.insert(node);
        }
    }
    styles
}

/// Whether a style hides its element with its content. `fade_ins` are animations that show it.
fn hides_element(style: &Style, fade_ins: &HashSet<String>) -> bool {
    let is = |property| matches!(style.get(&property), Some((_, Value::Effective(true))));
    let position = word_value(style, Property::Position).unwrap_or_default();
    let is_apart = matches!(position, "absolute" | "fixed");
    let is_placed = is_apart || matches!(position, "relative" | "sticky" | "-webkit-sticky");
    let fades_in = || {
        let names = word_value(style, Property::Animation("name")).unwrap_or_default();
        let end = word_value(style, Property::Animation("end")).unwrap_or(names);
        names.split([' ', ',']).any(|name| fade_ins.contains(name))
            && end.split([' ', ',']).any(|it| matches!(it, "forwards" | "both"))
    };
    style.iter().any(|(property, (_, value))| match property {
        Property::Display => *value == Value::Word("none".to_owned()),
        _ if *value != Value::Effective(true) => false,
        Property::Other("left" | "right" | "top") => is_placed,
        Property::Other("clip") => is_apart,
        Property::Other("opacity") => !fades_in(),
        Property::Other(_) => true,
        Property::Size(_) => is(Property::Overflow),
        _ => false,
    })
}

/// Whether an element is part of a drawing.
fn is_drawing(element: &Element) -> bool {
    &*element.name.ns == "http://www.w3.org/2000/svg"
}

/// Whether an element has no content that a style could add to.
fn is_replaced(element: &Element) -> bool {
    matches!(
        element.name(),
        "img" | "br" | "hr" | "input" | "textarea" | "select" | "option" | "iframe" | "video"
    )
}

/// Returns the styles of an element and of the boxes before and after its content, from the page's sheets
/// and its own attributes.
fn read_styles(
    element: ElementRef<'_>,
    rules: &Rules,
    by_name: &HashMap<&str, Vec<&Rule>>,
    steps: &mut StepBudget,
) -> [Style; 3] {
    let mut styles = [Style::new(), Style::new(), Style::new()];
    let mut set_value = |target: Target, declaration: Declaration, weight: Weight| {
        let style = match target {
            Target::Element => &mut styles[0],
            Target::Before => &mut styles[1],
            Target::After => &mut styles[2],
        };
        if style.get(&declaration.property).is_none_or(|(last, _)| weight >= *last) {
            style.insert(declaration.property, (weight, declaration.value));
        }
    };
    let own_weight = |important: bool, inline: bool, layer: usize| Weight {
        important,
        inline,
        layer,
        specificity: [0; 3],
        order: 0,
    };
    if is_drawing(element.value()) {
        for name in ["display", "visibility", "opacity", "fill", "stroke", "font-size"] {
            let Some(value) = element.attr(name) else { continue };
            for declaration in parse_declarations(&format!("{name}:{value}")) {
                set_value(Target::Element, declaration, own_weight(false, false, 0));
            }
        }
    }
    let names = element.value().classes().chain(element.value().id()).chain([""]);
    let parent = element.parent().map(|parent| parent.id());
    for rule in names.filter_map(|name| by_name.get(name)).flatten() {
        let name = element.value().name();
        let has_tag = rule.tag.as_ref().is_none_or(|tag| tag.eq_ignore_ascii_case(name));
        let walks = if has_tag { rule.walks } else { Walks::default() };
        if steps.take(walks, parent) && has_tag && rule.selector.matches(&element) {
            set_value(rule.target, rule.declaration.clone(), rule.weight);
        }
    }
    let style = element.attr("style").unwrap_or_default();
    for declaration in parse_declarations(&rules.resolve_variables(style, style)) {
        let weight = own_weight(declaration.important, true, usize::MAX);
        set_value(Target::Element, declaration, weight);
    }
    styles
}

/// Returns a color from an attribute older than styles.
fn color_attribute(element: &Element, name: &str) -> Option<Rgb> {
    let value = element.attr(name)?.trim().to_ascii_lowercase();
    parse_color(&value).or_else(|| parse_color(&format!("#{value}")))
}

/// Returns the background from such attributes; unknown for a picture.
fn background_attribute(element: &Element) -> Option<Background> {
    if element.attr("background").is_some() {
        return Some(Background::Unknown);
    }
    element.attr("bgcolor")?;
    Some(color_attribute(element, "bgcolor").map_or(Background::Unknown, Background::Plain))
}
