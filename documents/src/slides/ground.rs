//! The background of the text of a slide. Text in the color of its background is hidden.
//!
//! Text counts as visible if a shape, a picture or a style may give it another background or color.

use std::{cell::OnceCell, collections::HashMap};

use super::shapes::{frame, pair, placeholder, related};
use crate::{
    colors::{Ground, Rgb, TINY, WHITE, hexadecimal},
    left_out::{Place, Tally},
    package::Package,
    xml::Element,
};

/// Elements for the fill of a shape or of letters.
const FILLS: [&str; 6] = ["solidFill", "gradFill", "blipFill", "pattFill", "grpFill", "noFill"];

/// Left, upper, right and lower edge; `None` if unknown.
type Frame = Option<[i64; 4]>;

/// The layer that a layout and its master draw below the shapes of a slide.
#[derive(Debug)]
pub(super) struct Backdrop {
    /// The colors of the theme, by their names on slides.
    scheme: HashMap<String, Rgb>,
    ground: Ground,
    /// Frames of pictures and filled shapes.
    pieces: Vec<Frame>,
    /// Whether its placeholders for text are filled.
    has_filled_places: bool,
}

impl Backdrop {
    /// Reads the backdrop of a layout.
    pub(super) fn of(package: &mut Package<'_>, layout: &str) -> Self {
        let first = |parts: Vec<String>| parts.into_iter().next();
        let master = first(related(package, layout, "slideMaster"));
        let theme = master.as_ref().and_then(|it| first(related(package, it, "theme")));
        let mut tree = |part: Option<&str>| part.and_then(|it| package.xml(it).ok().flatten());
        let (layout, theme) = (tree(Some(layout)), tree(theme.as_deref()));
        let Some(master) = tree(master.as_deref()) else { return Self::plain() };
        let scheme = scheme(&master, theme.as_ref());
        let trees: Vec<&Element> = [Some(&master), layout.as_ref()].into_iter().flatten().collect();
        let mut backdrop = Self { scheme, ..Self::plain() };
        for tree in trees {
            backdrop.ground = backdrop.under(tree);
            for shape in tree.all("spTree").into_iter().flat_map(Element::elements) {
                if placeholder(shape).is_some() {
                    let filled = fill(shape).is_some_and(|fill| &*fill.name != "noFill");
                    backdrop.has_filled_places |= filled;
                } else if is_opaque(shape) {
                    backdrop.pieces.push(edges(shape));
                }
            }
        }
        backdrop
    }

    /// Returns a white backdrop without shapes.
    pub(super) fn plain() -> Self {
        let (scheme, pieces) = (HashMap::new(), Vec::new());
        Self { scheme, ground: Ground::Plain(WHITE), pieces, has_filled_places: false }
    }

    /// Returns the background of a part, or else that of this backdrop.
    fn under(&self, part: &Element) -> Ground {
        // The part gives the theme's colors other names.
        if !part.all("overrideClrMapping").is_empty() {
            return Ground::Unknown;
        }
        let backgrounds = part.all("bg");
        let Some(background) = backgrounds.first() else { return self.ground };
        let color = match (background.child("bgPr"), background.child("bgRef")) {
            (Some(properties), _) => properties.child("solidFill").and_then(|it| self.color(it)),
            // The first background of the theme is a plain color.
            (_, Some(named)) if named.attribute("idx").as_deref() == Some("1001") => {
                self.color(named)
            }
            _ => None,
        };
        color.map_or(Ground::Unknown, Ground::Plain)
    }

    /// Returns the color of a fill; `None` if it is modified or unknown.
    fn color(&self, fill: &Element) -> Option<Rgb> {
        let color = fill.elements().next()?;
        if color.elements().next().is_some() {
            return None;
        }
        match &*color.name {
            "srgbClr" => hexadecimal(&color.attribute("val")?),
            "sysClr" => hexadecimal(&color.attribute("lastClr")?),
            "schemeClr" => self.scheme.get(&color.attribute("val")?).copied(),
            "prstClr" => match color.attribute("val")?.as_str() {
                "white" => Some(WHITE),
                "black" => Some([0; 3]),
                _ => None,
            },
            _ => None,
        }
    }
}

/// A slide whose text is checked for visibility.
pub(super) struct Scene<'s> {
    pub(super) slide: &'s Element,
    pub(super) backdrop: &'s Backdrop,
    pub(super) tally: &'s Tally,
    /// `None` for a layout or master.
    pub(super) number: Option<usize>,
}

impl<'s> Scene<'s> {
    /// Returns the letters of one of its shapes.
    pub(super) fn ink(&'s self, shape: &'s Element) -> Ink<'s> {
        Ink { scene: self, shape, ground: OnceCell::new() }
    }

    fn ground_of(&self, shape: &Element) -> Ground {
        match fill(shape) {
            Some(fill) if &*fill.name == "solidFill" => {
                self.backdrop.color(fill).map_or(Ground::Unknown, Ground::Plain)
            }
            Some(fill) if &*fill.name != "noFill" => Ground::Unknown,
            None if shape.child("style").is_some() => Ground::Unknown,
            None if self.backdrop.has_filled_places && placeholder(shape).is_some() => {
                Ground::Unknown
            }
            _ => self.ground_below(shape),
        }
    }

    /// Returns the background below a shape: the slide's own, or unknown if another shape may be
    /// there.
    fn ground_below(&self, shape: &Element) -> Ground {
        let trees = self.slide.all("spTree");
        let Some(tree) = trees.first() else { return Ground::Unknown };
        let mut below = Vec::new();
        for other in tree.elements() {
            if std::ptr::eq(other, shape) {
                let own = edges(shape);
                let is_free = below.iter().chain(&self.backdrop.pieces).all(|it| apart(own, *it));
                return if is_free { self.backdrop.under(self.slide) } else { Ground::Unknown };
            }
            if is_opaque(other) {
                below.push(edges(other));
            }
        }
        // The shape is in a group, which has its own coordinates, or in a table.
        Ground::Unknown
    }
}

/// The letters of a shape.
pub(super) struct Ink<'s> {
    scene: &'s Scene<'s>,
    shape: &'s Element,
    ground: OnceCell<Ground>,
}

impl Ink<'_> {
    /// Returns the text of a run if it is visible; else its replacement.
    pub(super) fn seen(&self, run: &Element, text: String) -> String {
        let Scene { tally, number, .. } = self.scene;
        match run.child("rPr") {
            Some(look) if self.hides(look) => tally.hidden_piece(&text, number.map(Place::Page)),
            _ => text,
        }
    }

    fn hides(&self, look: &Element) -> bool {
        let size = look.attribute("sz").and_then(|size| size.parse().ok());
        // In hundredths of a point.
        if size.is_some_and(|size: f64| size / 100.0 <= TINY) {
            return true;
        }
        // An outline, a shadow or a highlight makes them visible.
        if ["ln", "effectLst", "effectDag", "highlight"].iter().any(|it| look.child(it).is_some()) {
            return false;
        }
        if look.child("noFill").is_some() {
            return true;
        }
        let Some(fill) = look.child("solidFill") else { return false };
        let alpha = fill.elements().next().and_then(|color| color.child("alpha")?.attribute("val"));
        let is_clear = alpha.is_some_and(|alpha| alpha == "0" || alpha == "0%");
        let ground = || *self.ground.get_or_init(|| self.scene.ground_of(self.shape));
        is_clear || self.scene.backdrop.color(fill).is_some_and(|color| ground().hides(color))
    }
}

/// Returns the colors of a theme, by the names in the master.
fn scheme(master: &Element, theme: Option<&Element>) -> HashMap<String, Rgb> {
    let schemes = theme.map(|theme| theme.all("clrScheme")).unwrap_or_default();
    let mut colors = HashMap::new();
    for named in schemes.first().into_iter().flat_map(|scheme| scheme.elements()) {
        let color = named.elements().next().and_then(|color| {
            let value = color.attribute("lastClr").or_else(|| color.attribute("val"))?;
            hexadecimal(&value)
        });
        colors.extend(color.map(|color| (named.name.to_string(), color)));
    }
    let names = master.all("clrMap");
    for name in ["bg1", "tx1", "bg2", "tx2"] {
        let of = names.first().and_then(|map| map.attribute(name));
        let color = of.and_then(|of| colors.get(&of).copied());
        colors.extend(color.map(|color| (name.to_owned(), color)));
    }
    colors
}

/// Returns the fill of a shape, if it states one.
fn fill(shape: &Element) -> Option<&Element> {
    shape.child("spPr")?.elements().find(|it| FILLS.contains(&&*it.name))
}

/// Returns whether a shape may be the background of text above it.
fn is_opaque(shape: &Element) -> bool {
    match &*shape.name {
        "sp" => fill(shape)
            .map_or_else(|| shape.child("style").is_some(), |fill| &*fill.name != "noFill"),
        "cxnSp" | "nvGrpSpPr" | "grpSpPr" | "extLst" => false,
        _ => true,
    }
}

fn edges(shape: &Element) -> Frame {
    let frame = frame(shape)?;
    let (x, y) = pair(frame.child("off")?, ["x", "y"])?;
    let (wide, high) = pair(frame.child("ext")?, ["cx", "cy"])?;
    Some([x, y, x.saturating_add(wide), y.saturating_add(high)])
}

/// Returns whether two frames certainly do not overlap.
fn apart(one: Frame, other: Frame) -> bool {
    let (Some(one), Some(other)) = (one, other) else { return false };
    let [left, upper, right, lower] = one;
    let [other_left, other_upper, other_right, other_lower] = other;
    right <= other_left || other_right <= left || lower <= other_upper || other_lower <= upper
}
