//! Visibility and look of a page's elements, from its own style sheets and attributes.

use std::collections::{HashMap, HashSet};

use ego_tree::NodeId;
use scraper::{ElementRef, Html, node::Element};

use super::{
    declarations::{Declaration, Property, Said, color, declarations},
    generated::{Counters, generated},
    rules::{Linked, Rule, Rules, Target, Weight},
};
use crate::colors::{Ground, Rgb, WHITE};

/// Most matches of a selector with an element that are tried: a page of many rules and elements must not
/// take minutes.
const MAX_TRIES: usize = 1_000_000;

/// Looks of a page's elements, as far as their text depends on them.
#[derive(Debug, Default)]
pub(super) struct Looks {
    /// Elements that are hidden with their content.
    pub(super) hidden: HashSet<NodeId>,
    /// Elements whose own words are not seen, by their color or `visibility`.
    pub(super) unseen: HashSet<NodeId>,
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
    /// List styles of elements.
    pub(super) markers: HashMap<NodeId, String>,
    /// Whether some rules were not applied because there were too many.
    pub(super) is_cut: bool,
}

/// The look of an element's words, as far as it may hide them.
#[derive(Debug, Clone, Copy)]
struct Paint {
    color: Option<Rgb>,
    /// Whether the color is fully transparent.
    is_clear: bool,
    ground: Ground,
    /// Whether something other than the color shows the words.
    is_through: bool,
    /// The outermost element whose `visibility` hides the words.
    veil: Option<NodeId>,
    /// Whether the words of a drawing are filled, and whether they have an outline.
    is_filled: bool,
    is_stroked: bool,
    /// Whether lines are kept; if so, whether spaces collapse.
    lines: Option<bool>,
}

impl Paint {
    fn on(ground: Ground) -> Self {
        Self {
            color: None,
            is_clear: false,
            ground,
            is_through: false,
            veil: None,
            is_filled: true,
            is_stroked: false,
            lines: None,
        }
    }

    /// Applies the color and the background of a style.
    fn colored(&mut self, style: &Style) {
        match style.get(&Property::Color) {
            Some((_, Said::Color(color))) => (self.color, self.is_clear) = (*color, false),
            Some((_, Said::Clear)) => self.is_clear = true,
            _ => {}
        }
        if let Some((_, Said::Ground(ground))) = style.get(&Property::Ground) {
            self.ground = *ground;
        }
    }

    fn is_unseen(&self) -> bool {
        let is_same = self.color.is_some_and(|it| self.ground.hides(it));
        (self.is_clear || is_same) && !self.is_through
    }
}

/// The value of greatest weight for each property of an element.
pub(super) type Style = HashMap<Property, (Weight, Said)>;

/// Returns the looks of a page's elements. `linked` returns the style sheets that the page refers to.
pub(super) fn looks(page: &Html, linked: Linked<'_>) -> Looks {
    let rules = Rules::of(page, linked);
    let mut by_name: HashMap<&str, Vec<&Rule>> = HashMap::new();
    for rule in &rules.rules {
        by_name.entry(rule.name.as_deref().unwrap_or_default()).or_default().push(rule);
    }
    // A missing style sheet may set any background.
    let paper = if rules.is_incomplete { Ground::Unknown } else { Ground::Plain(WHITE) };
    let (mut looks, mut tries, mut counters) = (Looks::default(), 0, Counters::default());
    // Paint of each element. A parent comes before its children.
    let mut paints: HashMap<NodeId, Paint> = HashMap::new();
    // Elements hidden by `visibility`, each with the element that hides it; and those of the latter with a
    // visible descendant.
    let (mut veiled, mut lifted) = (Vec::new(), HashSet::new());
    for node in page.tree.root().descendants() {
        let Some(element) = ElementRef::wrap(node) else { continue };
        let [style, before, after] = styles(element, &rules, &by_name, &mut tries);
        let is = |property| matches!(style.get(&property), Some((_, Said::Is(true))));
        let display = style.get(&Property::Other("display")).map(|(_, said)| said);
        if hides(&style, &rules.fade_ins) {
            looks.hidden.insert(node.id());
        } else if display == Some(&Said::Is(false)) && !rules.is_incomplete {
            looks.shown.insert(node.id());
        }
        if is(Property::Line) && !matches!(element.value().name(), "del" | "s" | "strike") {
            looks.struck.insert(node.id());
        }
        if let Some(marker) = word(&style, Property::Marker) {
            looks.markers.insert(node.id(), marker.to_owned());
        }
        let around = node.parent().and_then(|parent| paints.get(&parent.id()).copied());
        let mut paint = around.unwrap_or_else(|| Paint::on(paper));
        if !style.contains_key(&Property::Color) {
            let name = if element.value().name() == "body" { "text" } else { "color" };
            paint.color = attribute(element.value(), name).or(paint.color);
        }
        paint.ground = ground_of(element.value()).unwrap_or(paint.ground);
        paint.colored(&style);
        paint.is_through |= ["clip", "letters"].into_iter().any(|it| is(Property::Through(it)));
        if let Some((_, said)) = style.get(&Property::Fill) {
            paint.is_filled = *said == Said::Is(true);
        }
        if let Some((_, said)) = style.get(&Property::Stroke) {
            paint.is_stroked = *said == Said::Is(true);
        }
        if let Some(spaces) = word(&style, Property::Spaces) {
            paint.lines = match spaces {
                "pre" | "pre-wrap" | "break-spaces" => Some(false),
                "pre-line" => Some(true),
                "inherit" => paint.lines,
                _ => None,
            };
        }
        if let Some(collapses) = paint.lines {
            looks.lines.insert(node.id(), collapses);
        }
        paint.veil = match style.get(&Property::Visibility) {
            Some((_, Said::Is(true))) => paint.veil.or_else(|| Some(node.id())),
            Some(_) => {
                lifted.extend(paint.veil);
                None
            }
            None => paint.veil,
        };
        veiled.extend(paint.veil.map(|veil| (node.id(), veil)));
        let is_outlined = is_drawing(element.value()) && !paint.is_filled && !paint.is_stroked;
        if paint.is_unseen() || is_outlined {
            looks.unseen.insert(node.id());
        }
        if !looks.hidden.contains(&node.id()) && !is_replaced(element.value()) {
            counters.count(&style);
            let mut texts = [String::new(), String::new()];
            for (style, text) in [before, after].iter().zip(&mut texts) {
                let mut paint = paint;
                paint.colored(style);
                let is_veiled = match style.get(&Property::Visibility) {
                    Some((_, said)) => *said == Said::Is(true),
                    None => paint.veil.is_some(),
                };
                let Some(content) = word(style, Property::Content) else { continue };
                let display = style.get(&Property::Other("display")).map(|(_, said)| said);
                if display != Some(&Said::Is(true)) {
                    counters.count(style);
                }
                if is_veiled || paint.is_unseen() || hides(style, &rules.fade_ins) {
                    continue;
                }
                match generated(content, element.value(), &counters) {
                    Some(words) => *text = words,
                    None => looks.not_generated += 1,
                }
            }
            if texts.iter().any(|text| !text.is_empty()) {
                looks.generated.insert(node.id(), texts);
            }
        }
        paints.insert(node.id(), paint);
    }
    looks.is_cut = rules.is_cut || tries > MAX_TRIES;
    for (node, veil) in veiled {
        if lifted.contains(&veil) {
            looks.unseen.insert(node);
        } else if node == veil {
            looks.hidden.insert(node);
        }
    }
    looks
}

/// Whether a style hides its element with its content. `fade_ins` are animations that show it.
fn hides(style: &Style, fade_ins: &HashSet<String>) -> bool {
    let is = |property| matches!(style.get(&property), Some((_, Said::Is(true))));
    let position = word(style, Property::Position).unwrap_or_default();
    let is_apart = matches!(position, "absolute" | "fixed");
    let is_placed = is_apart || matches!(position, "relative" | "sticky" | "-webkit-sticky");
    let fades_in = || {
        let names = word(style, Property::Animation("name")).unwrap_or_default();
        let end = word(style, Property::Animation("end")).unwrap_or(names);
        names.split([' ', ',']).any(|name| fade_ins.contains(name))
            && end.split([' ', ',']).any(|it| matches!(it, "forwards" | "both"))
    };
    style.iter().any(|(property, (_, said))| match property {
        _ if *said != Said::Is(true) => false,
        Property::Other("left" | "right" | "top") => is_placed,
        Property::Other("clip") => is_apart,
        Property::Other("opacity") => !fades_in(),
        Property::Other(_) => true,
        Property::Size(_) => is(Property::Overflow),
        _ => false,
    })
}

/// Returns the value of a property that is kept as a word.
pub(super) fn word(style: &Style, property: Property) -> Option<&str> {
    match style.get(&property) {
        Some((_, Said::Word(word))) => Some(word),
        _ => None,
    }
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
fn styles(
    element: ElementRef<'_>,
    rules: &Rules,
    by_name: &HashMap<&str, Vec<&Rule>>,
    tries: &mut usize,
) -> [Style; 3] {
    let mut styles = [Style::new(), Style::new(), Style::new()];
    let mut say = |target: Target, said: Declaration, weight: Weight| {
        let style = match target {
            Target::Element => &mut styles[0],
            Target::Before => &mut styles[1],
            Target::After => &mut styles[2],
        };
        if style.get(&said.property).is_none_or(|(last, _)| weight >= *last) {
            style.insert(said.property, (weight, said.said));
        }
    };
    let own = |important: bool, inline: bool, layer: usize| Weight {
        important,
        inline,
        layer,
        specificity: [0; 3],
        order: 0,
    };
    if is_drawing(element.value()) {
        for name in ["display", "visibility", "opacity", "fill", "stroke", "font-size"] {
            let Some(value) = element.attr(name) else { continue };
            for said in declarations(&format!("{name}:{value}")) {
                say(Target::Element, said, own(false, false, 0));
            }
        }
    }
    let names = element.value().classes().chain(element.value().id()).chain([""]);
    for rule in names.filter_map(|name| by_name.get(name)).flatten() {
        *tries += 1;
        if *tries <= MAX_TRIES && rule.selector.matches(&element) {
            say(rule.target, rule.said.clone(), rule.weight);
        }
    }
    let style = element.attr("style").unwrap_or_default();
    for said in declarations(&rules.resolved(style, style)) {
        let weight = own(said.important, true, usize::MAX);
        say(Target::Element, said, weight);
    }
    styles
}

/// Returns a color from an attribute older than styles.
fn attribute(element: &Element, name: &str) -> Option<Rgb> {
    let value = element.attr(name)?.trim().to_ascii_lowercase();
    color(&value).or_else(|| color(&format!("#{value}")))
}

/// Returns the background from such attributes; unknown for a picture.
fn ground_of(element: &Element) -> Option<Ground> {
    if element.attr("background").is_some() {
        return Some(Ground::Unknown);
    }
    element.attr("bgcolor")?;
    Some(attribute(element, "bgcolor").map_or(Ground::Unknown, Ground::Plain))
}
