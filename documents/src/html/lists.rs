//! Lists of a page: the mark before each item.

use scraper::node::Element;

use super::css::unescape;
use crate::numerals::write_number;

/// Largest number written in Roman numerals.
const MAX_ROMAN: i64 = 3_999;

/// Styles of lists whose systems of numbers have other names here.
const SYSTEMS: [(&str, &str); 30] = [
    ("a", "lower-latin"),
    ("lower-alpha", "lower-latin"),
    ("A", "upper-latin"),
    ("upper-alpha", "upper-latin"),
    ("i", "lowerRoman"),
    ("lower-roman", "lowerRoman"),
    ("I", "upperRoman"),
    ("upper-roman", "upperRoman"),
    ("1", "decimal"),
    ("decimal-leading-zero", "decimalZero"),
    ("thai", "thaiNumbers"),
    ("devanagari", "hindiNumbers"),
    ("hebrew", "hebrew1"),
    ("upper-armenian", "armenian"),
    ("cambodian", "khmer"),
    ("cjk-decimal", "ideographDigital"),
    ("cjk-ideographic", "chineseCounting"),
    ("simp-chinese-informal", "chineseCounting"),
    ("trad-chinese-informal", "chineseCounting"),
    ("simp-chinese-formal", "chineseLegalSimplified"),
    ("trad-chinese-formal", "ideographLegalTraditional"),
    ("japanese-informal", "japaneseCounting"),
    ("japanese-formal", "japaneseLegal"),
    ("korean-hangul-formal", "koreanCounting"),
    ("cjk-heavenly-stem", "ideographTraditional"),
    ("cjk-earthly-branch", "ideographZodiac"),
    ("katakana", "aiueo"),
    ("katakana-iroha", "iroha"),
    ("hangul", "ganada"),
    ("hangul-consonant", "chosung"),
];

/// Styles of lists whose systems of numbers have the same names here.
const SAME_SYSTEMS: [&str; 22] = [
    "decimal",
    "lower-latin",
    "upper-latin",
    "lower-greek",
    "armenian",
    "lower-armenian",
    "georgian",
    "hiragana",
    "hiragana-iroha",
    "arabic-indic",
    "persian",
    "bengali",
    "gujarati",
    "gurmukhi",
    "kannada",
    "khmer",
    "lao",
    "malayalam",
    "myanmar",
    "oriya",
    "tamil",
    "telugu",
];

/// An open list.
#[derive(Debug)]
pub(super) struct List {
    /// Number of the next item.
    next: i64,
    step: i64,
    kind: Kind,
}

/// The mark of a list's items.
#[derive(Debug, Clone)]
enum Kind {
    /// Numbers of a system.
    Numbers(&'static str),
    Bullet,
    Nothing,
    /// A text of the style sheet.
    Text(String),
}

impl List {
    /// Opens a list of `items` items; `marker` is its style.
    pub(super) fn read(list: &Element, marker: Option<&str>, items: usize) -> Self {
        let is_numbered = list.name() == "ol";
        let kind = Kind::from_element(list, marker);
        let usual = if is_numbered { Kind::Numbers("decimal") } else { Kind::Bullet };
        let kind = kind.unwrap_or(usual);
        let is_reversed = list.attr("reversed").is_some();
        let first = if is_reversed { i64::try_from(items).unwrap_or(1) } else { 1 };
        let next = number(list, "start").unwrap_or(first);
        Self { next, step: if is_reversed { -1 } else { 1 }, kind }
    }

    /// Returns the mark of an item, with a space after it.
    pub(super) fn next_mark(&mut self, item: &Element, marker: Option<&str>) -> String {
        let number = number(item, "value").unwrap_or(self.next);
        self.next = number.saturating_add(self.step);
        match Kind::from_element(item, marker).as_ref().unwrap_or(&self.kind) {
            Kind::Bullet => "- ".to_owned(),
            Kind::Nothing => String::new(),
            Kind::Text(text) => text.clone(),
            Kind::Numbers(system) => format!("{}. ", format_number(number, system)),
        }
    }
}

impl Kind {
    /// Returns the kind set by the style, which may have several words, or by the `type` attribute.
    fn from_element(element: &Element, style: Option<&str>) -> Option<Self> {
        let style = style.unwrap_or_default();
        let quote = style.find(['"', '\'']).filter(|_| !style.contains("url("));
        let quote = quote.map(|at| style[at..].split_at(1));
        if let Some((text, _)) = quote.and_then(|(quote, rest)| rest.split_once(quote)) {
            return Some(Self::Text(unescape(text).into_owned()));
        }
        let styled =
            style.split_whitespace().find_map(|it| Self::by_name(&it.to_ascii_lowercase()));
        styled.or_else(|| Self::by_name(element.attr("type")?.trim()))
    }

    /// Returns the kind of a style's word or of a `type`, whose letter may be a capital.
    fn by_name(name: &str) -> Option<Self> {
        let system = || {
            let renamed = SYSTEMS.iter().find(|(known, _)| *known == name);
            let same = || SAME_SYSTEMS.into_iter().find(|known| *known == name);
            renamed.map(|(_, system)| *system).or_else(same)
        };
        match name {
            "disc" | "circle" | "square" | "disclosure-open" | "disclosure-closed" => {
                Some(Self::Bullet)
            }
            "none" => Some(Self::Nothing),
            _ => system().map(Self::Numbers),
        }
    }
}

/// Writes a number in a list style. Returns `None` if it is no style of numbers.
pub(super) fn number_in_style(number: i64, style: &str) -> Option<String> {
    match Kind::by_name(style)? {
        Kind::Numbers(system) => Some(format_number(number, system)),
        _ => None,
    }
}

fn format_number(number: i64, system: &str) -> String {
    let is_roman = matches!(system, "lowerRoman" | "upperRoman");
    match usize::try_from(number) {
        Ok(count) if count > 0 && (!is_roman || number <= MAX_ROMAN) => write_number(count, system),
        _ => number.to_string(),
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
            ("style='list-style-type: hiragana'", "あ. x\nい. y"),
            ("style='list-style-type: cjk-decimal' start=10", "一〇. x\n一一. y"),
            ("style='list-style: inside \"No \"'", "No x\nNo y"),
            ("style='list-style-type: decimal-leading-zero'", "01. x\n02. y"),
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
