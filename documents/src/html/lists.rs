//! Lists of a page: the mark before each item.

use scraper::node::Element;

use crate::numerals::{latin, roman};

const GREEK: &str = "αβγδεζηθικλμνξοπρστυφχψω";

/// Largest number written in Roman numerals.
const MAX_ROMAN: usize = 3_999;

/// An open list.
#[derive(Debug)]
pub(super) struct List {
    /// Number of the next item.
    next: i64,
    step: i64,
    kind: Kind,
}

/// Ways of writing numbers.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Decimal,
    Letters { capital: bool },
    Roman { capital: bool },
    Greek,
    Padded,
    Bullet,
    Nothing,
}

impl List {
    /// Opens a list of `items` items; `marker` is its style.
    pub(super) fn read(list: &Element, marker: Option<&str>, items: usize) -> Self {
        let is_numbered = list.name() == "ol";
        let kind = Kind::from_element(list, marker);
        let kind = kind.unwrap_or(if is_numbered { Kind::Decimal } else { Kind::Bullet });
        let is_reversed = list.attr("reversed").is_some();
        let first = if is_reversed { i64::try_from(items).unwrap_or(1) } else { 1 };
        let next = number(list, "start").unwrap_or(first);
        Self { next, step: if is_reversed { -1 } else { 1 }, kind }
    }

    /// Returns the mark of an item, with a space after it.
    pub(super) fn next_mark(&mut self, item: &Element, marker: Option<&str>) -> String {
        let number = number(item, "value").unwrap_or(self.next);
        self.next = number.saturating_add(self.step);
        match Kind::from_element(item, marker).unwrap_or(self.kind) {
            Kind::Bullet => "- ".to_owned(),
            Kind::Nothing => String::new(),
            kind => format!("{}. ", kind.format_number(number)),
        }
    }
}

impl Kind {
    /// Returns the kind set by the style, which may have several words, or by the `type` attribute.
    fn from_element(element: &Element, style: Option<&str>) -> Option<Self> {
        let styled = style.unwrap_or_default().split_whitespace().find_map(Self::by_name);
        styled.or_else(|| Self::by_name(element.attr("type")?.trim()))
    }

    /// Returns the kind of a style's word or of a `type`, whose letter may be a capital.
    fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "a" | "lower-alpha" | "lower-latin" => Self::Letters { capital: false },
            "A" | "upper-alpha" | "upper-latin" => Self::Letters { capital: true },
            "i" | "lower-roman" => Self::Roman { capital: false },
            "I" | "upper-roman" => Self::Roman { capital: true },
            "1" | "decimal" => Self::Decimal,
            "lower-greek" => Self::Greek,
            "decimal-leading-zero" => Self::Padded,
            "disc" | "circle" | "square" => Self::Bullet,
            "none" => Self::Nothing,
            _ => return None,
        })
    }

    fn format_number(self, number: i64) -> String {
        let count = usize::try_from(number).unwrap_or(0);
        let (text, capital) = match self {
            Self::Letters { capital } if count > 0 => (latin(count), capital),
            Self::Roman { capital } if (1..=MAX_ROMAN).contains(&count) => (roman(count), capital),
            Self::Padded => return format!("{number:02}"),
            Self::Greek => {
                let letter = count.checked_sub(1).and_then(|at| GREEK.chars().nth(at));
                return letter.map_or_else(|| number.to_string(), String::from);
            }
            _ => return number.to_string(),
        };
        if capital { text.to_ascii_uppercase() } else { text }
    }
}

fn number(element: &Element, attribute: &str) -> Option<i64> {
    element.attr(attribute)?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    fn read(page: &str) -> String {
        super::super::extract(page.as_bytes(), &crate::left_out::Tally::default()).unwrap()
    }

    #[test]
    fn items_are_numbered_as_the_page_shows_them() {
        let list = |attributes: &str| read(&format!("<ol {attributes}><li>x<li>y</ol>"));
        for (attributes, expected) in [
            ("", "1. x\n2. y"),
            ("start=7", "7. x\n8. y"),
            ("start=' -1 '", "-1. x\n0. y"),
            ("type=a", "a. x\nb. y"),
            ("type=A start=26", "Z. x\nAA. y"),
            ("type=a start=53", "ba. x\nbb. y"),
            ("type=I start=4", "IV. x\nV. y"),
            ("type=i start=3999", "mmmcmxcix. x\n4000. y"),
            ("type=i start=0", "0. x\ni. y"),
            ("reversed", "2. x\n1. y"),
            ("reversed start=5", "5. x\n4. y"),
            ("style='color:red; List-Style-Type: upper-alpha'", "A. x\nB. y"),
            ("type=q start=z", "1. x\n2. y"),
        ] {
            assert_eq!(list(attributes), expected, "{attributes}");
        }
        assert_eq!(
            read("<ol type=a><li value=10>x<li type=1>y<li>z<ul><li>deep</ul></ol>"),
            "j. x\n11. y\nl. z\n\n  - deep"
        );
        let end = format!("<ol start={}><li>x<li>y</ol>", i64::MAX);
        assert!(read(&end).ends_with(&format!("{}. y", i64::MAX)));
    }
}
