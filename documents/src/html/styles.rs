//! Visibility and look of a page's elements, from its own style sheets and attributes.

use std::collections::{HashMap, HashSet};

use ego_tree::NodeId;
use scraper::{ElementRef, Html, Selector, node::Element};

use super::{
    declarations::{Property, Said, color, declarations},
    rules::{Rule, Rules, Weight},
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
}

impl Paint {
    fn on(ground: Ground) -> Self {
        Self { color: None, is_clear: false, ground, is_through: false, veil: None }
    }
}

/// The value of greatest weight for each property of an element.
type Style = HashMap<Property, (Weight, Said)>;

/// Returns the looks of a page's elements.
pub(super) fn looks(page: &Html) -> Looks {
    let Rules { rules, is_cut } = Rules::of(page);
    let mut by_name: HashMap<&str, Vec<&Rule>> = HashMap::new();
    for rule in &rules {
        by_name.entry(rule.name.as_deref().unwrap_or_default()).or_default().push(rule);
    }
    // A linked style sheet may set any background.
    let linked = Selector::parse("link[rel~=stylesheet]").ok();
    let is_linked = linked.is_some_and(|linked| page.select(&linked).next().is_some());
    let paper = if is_linked { Ground::Unknown } else { Ground::Plain(WHITE) };
    let (mut looks, mut tries) = (Looks::default(), 0);
    // Paint of each element. A parent comes before its children.
    let mut paints: HashMap<NodeId, Paint> = HashMap::new();
    // Elements hidden by `visibility`, each with the element that hides it; and those of the latter with a
    // visible descendant.
    let (mut veiled, mut lifted) = (Vec::new(), HashSet::new());
    for node in page.tree.root().descendants() {
        let Some(element) = ElementRef::wrap(node) else { continue };
        let style = style(element, &by_name, &mut tries);
        let is = |property| matches!(style.get(&property), Some((_, Said::Is(true))));
        let hides = style.iter().any(|(property, (_, said))| match property {
            Property::Other(_) => *said == Said::Is(true),
            Property::Size(_) => *said == Said::Is(true) && is(Property::Overflow),
            _ => false,
        });
        if hides {
            looks.hidden.insert(node.id());
        }
        if is(Property::Line) && !matches!(element.value().name(), "del" | "s" | "strike") {
            looks.struck.insert(node.id());
        }
        if let Some((_, Said::Word(marker))) = style.get(&Property::Marker) {
            looks.markers.insert(node.id(), marker.clone());
        }
        let around = node.parent().and_then(|parent| paints.get(&parent.id()).copied());
        let mut paint = around.unwrap_or_else(|| Paint::on(paper));
        match style.get(&Property::Color) {
            Some((_, Said::Color(color))) => (paint.color, paint.is_clear) = (*color, false),
            Some((_, Said::Clear)) => paint.is_clear = true,
            _ => {
                let name = if element.value().name() == "body" { "text" } else { "color" };
                paint.color = attribute(element.value(), name).or(paint.color);
            }
        }
        paint.ground = match style.get(&Property::Ground) {
            Some((_, Said::Ground(ground))) => *ground,
            _ => ground_of(element.value()).unwrap_or(paint.ground),
        };
        paint.is_through |= ["clip", "letters"].into_iter().any(|it| is(Property::Through(it)));
        paint.veil = match style.get(&Property::Visibility) {
            Some((_, Said::Is(true))) => paint.veil.or_else(|| Some(node.id())),
            Some(_) => {
                lifted.extend(paint.veil);
                None
            }
            None => paint.veil,
        };
        veiled.extend(paint.veil.map(|veil| (node.id(), veil)));
        let is_unseen = paint.is_clear || paint.color.is_some_and(|it| paint.ground.hides(it));
        if is_unseen && !paint.is_through {
            looks.unseen.insert(node.id());
        }
        paints.insert(node.id(), paint);
    }
    looks.is_cut = is_cut || tries > MAX_TRIES;
    for (node, veil) in veiled {
        if lifted.contains(&veil) {
            looks.unseen.insert(node);
        } else if node == veil {
            looks.hidden.insert(node);
        }
    }
    looks
}

/// Returns the style of an element, from the page's sheets and its own attribute.
fn style(element: ElementRef<'_>, by_name: &HashMap<&str, Vec<&Rule>>, tries: &mut usize) -> Style {
    let mut style = Style::new();
    let mut say = |property: Property, weight: Weight, said: Said| {
        if style.get(&property).is_none_or(|(last, _)| weight >= *last) {
            style.insert(property, (weight, said));
        }
    };
    let names = element.value().classes().chain(element.value().id()).chain([""]);
    for rule in names.filter_map(|name| by_name.get(name)).flatten() {
        *tries += 1;
        if *tries <= MAX_TRIES && rule.selector.matches(&element) {
            say(rule.said.property, rule.weight, rule.said.said.clone());
        }
    }
    for own in declarations(element.attr("style").unwrap_or_default()) {
        let weight =
            Weight { important: own.important, inline: true, specificity: [0; 3], order: 0 };
        say(own.property, weight, own.said);
    }
    style
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
