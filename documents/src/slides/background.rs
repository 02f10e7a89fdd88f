//! The background of the text of a slide. Text in the color of its background is hidden.
//!
//! Text counts as visible if a shape, a picture or a style may give it another background or color.

use std::{cell::OnceCell, collections::HashMap};

use super::shapes::{placeholder_kind, read_pair, related_parts, shape_frame};
use crate::{
    colors::{Background, Rgb, TINY, WHITE, parse_hexadecimal},
    drawing::is_clear_fill,
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
pub(super) struct LayoutBackground {
    /// The colors of the theme, by their names on slides.
    theme_colors: HashMap<String, Rgb>,
    background: Background,
    /// Frames of pictures and filled shapes.
    opaque_frames: Vec<Frame>,
    /// Whether its placeholders for text are filled.
    has_filled_placeholders: bool,
}

impl LayoutBackground {
    /// Reads the background of a layout.
    pub(super) fn read(package: &mut Package<'_>, layout: &str) -> Self {
        let first = |parts: Vec<String>| parts.into_iter().next();
        let master = first(related_parts(package, layout, "slideMaster"));
        let theme = master.as_ref().and_then(|it| first(related_parts(package, it, "theme")));
        let mut tree = |part: Option<&str>| part.and_then(|it| package.xml(it).ok().flatten());
        let (layout, theme) = (tree(Some(layout)), tree(theme.as_deref()));
        let Some(master) = tree(master.as_deref()) else { return Self::plain() };
        let theme_colors = theme_colors(&master, theme.as_ref());
        let trees: Vec<&Element> = [Some(&master), layout.as_ref()].into_iter().flatten().collect();
        let mut background = Self { theme_colors, ..Self::plain() };
        for tree in trees {
            background.background = background.background_of(tree);
            for shape in tree.all("spTree").into_iter().flat_map(Element::elements) {
                if placeholder_kind(shape).is_some() {
                    let filled = shape_fill(shape).is_some_and(|fill| &*fill.name != "noFill");
                    background.has_filled_placeholders |= filled;
                } else if is_opaque(shape) {
                    background.opaque_frames.push(frame_edges(shape));
                }
            }
        }
        background
    }

    /// Returns a white background without shapes.
    pub(super) fn plain() -> Self {
        let (theme_colors, opaque_frames) = (HashMap::new(), Vec::new());
        Self {
            theme_colors,
            background: Background::Plain(WHITE),
            opaque_frames,
            has_filled_placeholders: false,
        }
    }

    /// Returns the background of a part, or else that of this layout.
    fn background_of(&self, part: &Element) -> Background {
        // The part gives the theme's colors other names.
        if !part.all("overrideClrMapping").is_empty() {
            return Background::Unknown;
        }
        let backgrounds = part.all("bg");
        let Some(background) = backgrounds.first() else { return self.background };
        let color = match (background.child("bgPr"), background.child("bgRef")) {
            (Some(properties), _) => properties.child("solidFill").and_then(|it| self.color(it)),
            // The first background of the theme is a plain color.
            (_, Some(named)) if named.attribute("idx").as_deref() == Some("1001") => {
                self.color(named)
            }
            _ => None,
        };
        color.map_or(Background::Unknown, Background::Plain)
    }

    /// Returns the color of a fill; `None` if it is modified or unknown.
    fn color(&self, fill: &Element) -> Option<Rgb> {
        let color = fill.elements().next()?;
        if color.elements().next().is_some() {
            return None;
        }
        match &*color.name {
            "srgbClr" => parse_hexadecimal(&color.attribute("val")?),
            "sysClr" => parse_hexadecimal(&color.attribute("lastClr")?),
            "schemeClr" => self.theme_colors.get(&color.attribute("val")?).copied(),
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
pub(super) struct SlideBackground<'s> {
    pub(super) slide: &'s Element,
    pub(super) layout_background: &'s LayoutBackground,
    pub(super) tally: &'s Tally,
    /// `None` for a layout or master.
    pub(super) number: Option<usize>,
}

impl<'s> SlideBackground<'s> {
    /// Returns the visibility of the runs of one of its shapes.
    pub(super) fn visibility_of(&'s self, shape: &'s Element) -> RunVisibility<'s> {
        RunVisibility { slide: self, shape, background: OnceCell::new() }
    }

    fn background_of_shape(&self, shape: &Element) -> Background {
        match shape_fill(shape) {
            Some(fill) if &*fill.name == "solidFill" => {
                self.layout_background.color(fill).map_or(Background::Unknown, Background::Plain)
            }
            Some(fill) if &*fill.name != "noFill" => Background::Unknown,
            None if shape.child("style").is_some() => Background::Unknown,
            None if self.layout_background.has_filled_placeholders
                && placeholder_kind(shape).is_some() =>
            {
                Background::Unknown
            }
            _ => self.background_below(shape),
        }
    }

    /// Returns the background below a shape: the slide's own, or unknown if another shape may be
    /// there.
    fn background_below(&self, shape: &Element) -> Background {
        let trees = self.slide.all("spTree");
        let Some(tree) = trees.first() else { return Background::Unknown };
        let mut below = Vec::new();
        for other in tree.elements() {
            if std::ptr::eq(other, shape) {
                let own = frame_edges(shape);
                let is_free = below
                    .iter()
                    .chain(&self.layout_background.opaque_frames)
                    .all(|it| are_apart(own, *it));
                return if is_free {
                    self.layout_background.background_of(self.slide)
                } else {
                    Background::Unknown
                };
            }
            if is_opaque(other) {
                below.push(frame_edges(other));
            }
        }
        // The shape is in a group, which has its own coordinates, or in a table.
        Background::Unknown
    }
}

/// The visibility of the runs of a shape.
pub(super) struct RunVisibility<'s> {
    slide: &'s SlideBackground<'s>,
    shape: &'s Element,
    background: OnceCell<Background>,
}

impl RunVisibility<'_> {
    /// Returns the text of a run if it is visible; else its replacement.
    pub(super) fn text_or_mark(&self, run: &Element, text: String) -> String {
        let SlideBackground { tally, number, .. } = self.slide;
        match run.child("rPr") {
            Some(look) if self.hides(look) => {
                tally.count_hidden_piece(&text, number.map(Place::Page))
            }
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
        if is_clear_fill(look, &["0", "0%"]) {
            return true;
        }
        let Some(fill) = look.child("solidFill") else { return false };
        let background =
            || *self.background.get_or_init(|| self.slide.background_of_shape(self.shape));
        self.slide.layout_background.color(fill).is_some_and(|color| background().hides(color))
    }
}

/// Returns the colors of a theme, by the names in the master.
fn theme_colors(master: &Element, theme: Option<&Element>) -> HashMap<String, Rgb> {
    let schemes = theme.map(|theme| theme.all("clrScheme")).unwrap_or_default();
    let mut colors = HashMap::new();
    for named in schemes.first().into_iter().flat_map(|scheme| scheme.elements()) {
        let color = named.elements().next().and_then(|color| {
            let value = color.attribute("lastClr").or_else(|| color.attribute("val"))?;
            parse_hexadecimal(&value)
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
fn shape_fill(shape: &Element) -> Option<&Element> {
    shape.child("spPr")?.elements().find(|it| FILLS.contains(&&*it.name))
}

/// Returns whether a shape may be the background of text above it.
fn is_opaque(shape: &Element) -> bool {
    match &*shape.name {
        "sp" => shape_fill(shape)
            .map_or_else(|| shape.child("style").is_some(), |fill| &*fill.name != "noFill"),
        "cxnSp" | "nvGrpSpPr" | "grpSpPr" | "extLst" => false,
        _ => true,
    }
}

fn frame_edges(shape: &Element) -> Frame {
    let frame = shape_frame(shape)?;
    let (x, y) = read_pair(frame.child("off")?, ["x", "y"])?;
    let (wide, high) = read_pair(frame.child("ext")?, ["cx", "cy"])?;
    Some([x, y, x.saturating_add(wide), y.saturating_add(high)])
}

/// Returns whether two frames certainly do not overlap.
fn are_apart(one: Frame, other: Frame) -> bool {
    let (Some(one), Some(other)) = (one, other) else { return false };
    let [left, upper, right, lower] = one;
    let [other_left, other_upper, other_right, other_lower] = other;
    right <= other_left || other_right <= left || lower <= other_upper || other_lower <= upper
}
