//! Styles of paragraphs and text: hidden text, fonts of symbols, colors.

use std::{
    collections::{HashMap, HashSet},
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use crate::{
    colors::{Background, TINY, parse_hexadecimal},
    look::{Color, Look},
    symbols::Fonts,
    xml::Element,
};

/// Longest chain of styles based on each other.
const MAX_CHAIN: usize = 20;

/// Longest name of a style that is kept, in bytes.
const MAX_NAME: usize = 256;

#[derive(Debug, Default)]
struct Style {
    base: Option<String>,
    look: Look,
}

#[derive(Debug, Default)]
pub(super) struct Styles {
    /// Styles by family and name.
    styles: HashMap<(String, String), Style>,
    /// Font families by the names that styles use.
    faces: HashMap<String, String>,
    /// Styles of hidden slides.
    hidden_pages: HashSet<String>,
    /// Styles of slides that do not show the shapes of their master.
    without_master: HashSet<String>,
}

impl Styles {
    pub(super) fn read_styles(&mut self, tree: &Element) {
        for face in tree.all("font-face") {
            if let (Some(name), Some(family)) =
                (face.attribute("name"), face.attribute("font-family"))
            {
                self.faces.insert(name, unquoted(&family));
            }
        }
        for style in tree.all("style") {
            let (Some(family), Some(name)) = (style.attribute("family"), style.attribute("name"))
            else {
                continue;
            };
            let is_hidden =
                |page: &Element| page.attribute("visibility").as_deref() == Some("hidden");
            if style.child("drawing-page-properties").is_some_and(is_hidden) {
                self.hidden_pages.insert(name.clone());
            }
            let hides_master = |page: &Element| page.is_off("background-objects-visible");
            if style.child("drawing-page-properties").is_some_and(hides_master) {
                self.without_master.insert(name.clone());
            }
            let base = style.attribute("parent-style-name").map(short_name);
            let look = style.child("text-properties").map(|text| self.look_of_properties(text));
            let mut look = look.unwrap_or_default();
            let around = ["paragraph-properties", "table-cell-properties"];
            let background = around.iter().find_map(|name| background_of(style.child(name)?));
            look.background = look.background.or(background);
            self.styles.insert((family, short_name(name)), Style { base, look });
        }
    }

    /// Returns the look of an element: its style and the styles under it, over the look around it.
    pub(super) fn look_of_element(&self, element: &Element, family: &str, around: Look) -> Look {
        self.look_of_style(element.attribute("style-name"), family, around)
    }

    /// Returns the look of a style and the styles under it, over the look around it.
    pub(super) fn look_of_style(&self, name: Option<String>, family: &str, around: Look) -> Look {
        let style = |name: String| self.styles.get(&(family.to_owned(), name));
        let first = name.map(short_name).and_then(style);
        let chain = std::iter::successors(first, |known| style(known.base.clone()?));
        let look =
            chain.take(MAX_CHAIN).fold(Look::default(), |look, known| look.or_from(known.look));
        look.or_from(around)
    }

    /// Returns whether a slide is hidden.
    pub(super) fn hides_page(&self, page: &Element) -> bool {
        page.attribute("style-name").is_some_and(|name| self.hidden_pages.contains(&name))
    }

    /// Returns whether a slide does not show the shapes of its master.
    pub(super) fn hides_master(&self, page: &Element) -> bool {
        page.attribute("style-name").is_some_and(|name| self.without_master.contains(&name))
    }

    fn look_of_properties(&self, text: &Element) -> Look {
        let hidden = text.attribute("display").map(|display| display == "none");
        let face = text.attribute("font-name");
        let face = face.map(|name| self.faces.get(&name).cloned().unwrap_or(name));
        let family = face.or_else(|| Some(unquoted(&text.attribute("font-family")?)));
        let height = text.attribute("text-position").map(|place| {
            match place.split_whitespace().next().unwrap_or_default() {
                "super" => 1.0,
                "sub" => -1.0,
                height => height.trim_end_matches('%').parse().unwrap_or(0.0_f32),
            }
        });
        let line = ["text-line-through-style", "text-line-through-type"];
        let line = line.iter().find_map(|name| text.attribute(name));
        let color =
            text.attribute("color").and_then(|it| parse_hexadecimal(it.trim_start_matches('#')));
        let size = text.attribute("font-size");
        let size = size.and_then(|size| size.strip_suffix("pt")?.parse::<f64>().ok());
        let is_automatic = text.attribute("use-window-font-color").as_deref() == Some("true");
        let color = if is_automatic { Some(Color::Automatic) } else { color.map(Color::Plain) };
        Look {
            hidden,
            raised: height.map(|height| height > 0.0),
            lowered: height.map(|height| height < 0.0),
            struck: line.map(|line| line != "none"),
            capitals: text.attribute("text-transform").map(|it| it == "uppercase"),
            tiny: size.map(|size| size <= TINY),
            color,
            background: background_of(text),
            fonts: family.map(|family| Fonts::by_names(Some(&family), &[])),
        }
    }
}

/// Returns the background that properties state; `None` if none is stated.
pub(super) fn background_of(properties: &Element) -> Option<Background> {
    let color = properties.attribute("background-color").filter(|it| it != "transparent")?;
    Some(
        parse_hexadecimal(color.trim_start_matches('#'))
            .map_or(Background::Unknown, Background::Plain),
    )
}

/// Returns the name of a style, or the hash of a long one: any number of cells may share a name.
pub(crate) fn short_name(name: String) -> String {
    if name.len() <= MAX_NAME {
        return name;
    }
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish().to_string()
}

/// Removes the quotes of a font family, as in `'Wingdings 2'`.
fn unquoted(family: &str) -> String {
    family.trim_matches(['\'', '"', ' ']).to_owned()
}
