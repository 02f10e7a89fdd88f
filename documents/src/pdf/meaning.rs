//! Meaning of a page's letters: from the font, otherwise from what is known of its codes.

use std::{borrow::Cow, collections::HashMap};

use encoding_rs::{BIG5, EUC_JP, EUC_KR, Encoding, GBK, SHIFT_JIS, UTF_16BE};
use hayro_interpret::{
    font::Glyph as Drawn,
    hayro_cmap::{BfString, CMap, CidFamily, load_embedded},
    hayro_syntax::{
        object::{Array, Dict, Name, Stream, String as PdfString},
        page::Page,
    },
};
use icu_normalizer::ComposingNormalizerBorrowed;
use skrifa::{FontRef, MetadataProvider as _};

use crate::symbols::Symbols;

/// Most characters read from a font's own table.
const MAX_GLYPHS: usize = 100_000;

/// Most fonts of a page that are looked at, and most forms.
const MAX_FONTS: usize = 1_000;

/// Deepest forms within forms whose fonts are looked at.
const MAX_FORM_DEPTH: u32 = 4;

/// Stands for a letter of unknown meaning.
pub(super) const UNKNOWN: char = char::REPLACEMENT_CHARACTER;

/// Meanings of a page's letters.
pub(super) struct Meanings<'a> {
    /// Fonts with a known encoding, by name.
    encodings: Vec<(String, &'static Encoding)>,
    /// The page's fonts, searched for tables once a letter has no meaning.
    fonts: Vec<Dict<'a>>,
    cid_tables: Option<Vec<CMap>>,
    /// Meaning of the numbers of a character collection, for the first font of the page with such numbers
    /// and without a table of its own.
    collection_map: Option<Option<CMap>>,
    /// Characters by glyph, from the tables of embedded fonts, by the font's key.
    embedded_maps: HashMap<u128, HashMap<u32, char>>,
    /// Number of letters whose meaning is known only to their font.
    pub(super) unknown: usize,
}

impl<'a> Meanings<'a> {
    pub(super) fn read(page: &Page<'a>) -> Self {
        let fonts = fonts(page);
        Self {
            encodings: known_encodings(&fonts),
            fonts,
            cid_tables: None,
            collection_map: None,
            embedded_maps: HashMap::new(),
            unknown: 0,
        }
    }

    /// Returns the text of a glyph; `None` if nothing tells it.
    pub(super) fn glyph_text(&mut self, glyph: &Drawn<'_>) -> Option<String> {
        let text = match glyph.as_unicode() {
            Some(BfString::Char(letter)) => String::from(letter),
            Some(BfString::String(letters)) => letters,
            None => self.guess_text(glyph)?,
        };
        let mut plain = String::new();
        for c in text.chars() {
            match plain_letters(c).or_else(|| tex_ligature(c, glyph).map(Cow::Borrowed)) {
                Some(letters) => plain.push_str(&letters),
                None if is_text(c) => plain.push(c),
                None if Symbols::is_code(c) => {
                    let symbols = self.symbols_of(glyph);
                    let sign = symbols.map_or(UNKNOWN, |symbols| symbols.meaning_of_code(c));
                    self.unknown += usize::from(sign == UNKNOWN);
                    plain.push(sign);
                }
                None => {}
            }
        }
        (!plain.is_empty()).then_some(plain)
    }

    /// Returns the character that the embedded font's own table maps to the glyph. Fonts embedded whole
    /// have such a table.
    fn find_in_embedded_font(&mut self, glyph: &Drawn<'_>) -> Option<char> {
        let Drawn::Outline(outline) = glyph else { return None };
        let font = outline.font_data()?;
        let letters = self.embedded_maps.entry(font.cache_key).or_insert_with(|| {
            let Ok(font) = FontRef::new((*font.data).as_ref()) else { return HashMap::new() };
            let letters = font.charmap().mappings().take(MAX_GLYPHS);
            let mut by_glyph = HashMap::new();
            for (code, glyph) in letters {
                // The first of several: a plain letter comes before its other forms.
                if let Some(letter) = char::from_u32(code) {
                    by_glyph.entry(glyph.to_u32()).or_insert(letter);
                }
            }
            by_glyph
        });
        letters.get(&outline.glyph_id().to_u32()).copied()
    }

    /// Returns the symbol font of a glyph, otherwise the first symbol font of the page.
    fn symbols_of(&self, glyph: &Drawn<'_>) -> Option<Symbols> {
        let own = match glyph {
            Drawn::Outline(outline) => outline.font_data().and_then(|font| font.postscript_name),
            Drawn::Type3(_) => None,
        };
        let own = own.and_then(|name| symbol_font(&name));
        own.or_else(|| {
            self.fonts.iter().find_map(|font| {
                let name = font.get::<Name<'_>>("BaseFont")?;
                symbol_font(name.as_str())
            })
        })
    }

    /// Returns the encoding of a glyph's font. Only embedded fonts have a name here; for others it is the
    /// page's first encoding.
    fn encoding_of(&self, glyph: &Drawn<'_>) -> Option<&'static Encoding> {
        let name = match glyph {
            Drawn::Outline(outline) => outline.font_data().and_then(|font| font.postscript_name),
            Drawn::Type3(_) => return None,
        };
        let mut encodings = self.encodings.iter();
        let found = encodings
            .find(|(known, _)| name.as_ref().is_none_or(|name| known == strip_subset_prefix(name)));
        found.map(|(_, encoding)| *encoding)
    }

    /// Returns the text of a code that the font does not map.
    fn guess_text(&mut self, glyph: &Drawn<'_>) -> Option<String> {
        let code = glyph.char_code();
        let fonts = &self.fonts;
        let known = self.cid_tables.get_or_insert_with(|| tables(fonts));
        let letter = known.iter().find_map(|table| {
            (1..=4).find_map(|length| char::from_u32(table.lookup_cid_code(code, length)?))
        });
        if let Some(letter) = letter.filter(|letter| is_text(*letter)) {
            return Some(letter.to_string());
        }
        if let Some(encoding) = self.encoding_of(glyph) {
            let bytes = code.to_be_bytes();
            let bytes = if code > 0xffff {
                &bytes[..]
            } else if code > 0xff || encoding == UTF_16BE {
                &bytes[2..]
            } else {
                &bytes[3..]
            };
            let text = encoding.decode_without_bom_handling_and_without_replacement(bytes)?;
            return Some(text.into_owned());
        }
        let fonts = &self.fonts;
        let collection = self.collection_map.get_or_insert_with(|| collection(fonts));
        if let Some(letters) = collection.as_ref().and_then(|it| it.lookup_bf_string(code)) {
            return Some(match letters {
                BfString::Char(letter) => String::from(letter),
                BfString::String(letters) => letters,
            });
        }
        if let Some(letter) = self.find_in_embedded_font(glyph) {
            return Some(letter.to_string());
        }
        // Letters drawn as pictures are mostly numbered as in ASCII.
        let ascii = u8::try_from(code).ok().filter(u8::is_ascii_graphic)?;
        matches!(glyph, Drawn::Type3(_)).then(|| char::from(ascii).to_string())
    }
}

/// Returns the names and encodings of the page's fonts that have a known encoding and no table of their
/// own.
fn known_encodings(fonts: &[Dict<'_>]) -> Vec<(String, &'static Encoding)> {
    let encodings = fonts.iter().filter_map(|font| {
        let parts = font.get::<Array<'_>>("DescendantFonts");
        let part = parts.and_then(|parts| parts.iter::<Dict<'_>>().next());
        let name = part.as_ref().unwrap_or(font).get::<Name<'_>>("BaseFont");
        let name =
            name.map(|name| strip_subset_prefix(name.as_str()).to_owned()).unwrap_or_default();
        Some((name, encoding(font)?))
    });
    encodings.collect()
}

fn encoding(font: &Dict<'_>) -> Option<&'static Encoding> {
    // The name of a table instead of a table: the codes are Unicode.
    let named = font.get::<Name<'_>>("ToUnicode");
    if named.is_some_and(|name| name.as_str().starts_with("Identity")) {
        return Some(UTF_16BE);
    }
    if font.contains_key("ToUnicode") {
        return None;
    }
    let encoding = font.get::<Name<'_>>("Encoding")?;
    let name = encoding.as_str();
    let known = [
        ("UCS2", UTF_16BE),
        ("UTF16", UTF_16BE),
        ("RKSJ", SHIFT_JIS),
        ("GBK", GBK),
        ("GB-EUC", GBK),
        ("B5", BIG5),
        ("KSC", EUC_KR),
        ("EUC-", EUC_JP),
    ];
    known.into_iter().find(|(part, _)| name.contains(part)).map(|(_, encoding)| encoding)
}

/// Strips the prefix of a subset from a font's name.
fn strip_subset_prefix(name: &str) -> &str {
    name.split_once('+').map_or(name, |(_, name)| name)
}

/// Returns the fonts of a page and of the forms that it draws.
fn fonts<'a>(page: &Page<'a>) -> Vec<Dict<'a>> {
    let resources = page.resources();
    let mut found = Vec::new();
    let mut groups = vec![(resources.fonts.clone(), resources.x_objects.clone(), 0)];
    let mut at = 0;
    while let Some((fonts, drawn, depth)) = groups.get(at).cloned() {
        at += 1;
        let room = MAX_FONTS.saturating_sub(found.len());
        found.extend(fonts.keys().take(room).filter_map(|name| fonts.get::<Dict<'a>>(name)));
        if depth == MAX_FORM_DEPTH {
            continue;
        }
        let room = MAX_FONTS.saturating_sub(groups.len());
        let forms = drawn.keys().take(room).filter_map(|name| drawn.get::<Stream<'a>>(name));
        groups.extend(forms.filter_map(|form| {
            let resources = form.dict().get::<Dict<'a>>("Resources")?;
            let part = |name: &str| resources.get::<Dict<'a>>(name).unwrap_or_default();
            Some((part("Font"), part("XObject"), depth + 1))
        }));
    }
    found
}

/// Returns tables of meanings written as tables of glyphs: `begincidrange` in place of `beginbfrange`.
/// Some programs write these, and all readers understand them.
fn tables(fonts: &[Dict<'_>]) -> Vec<CMap> {
    let tables = fonts.iter().filter_map(|font| {
        let table = font.get::<Stream<'_>>("ToUnicode")?.decoded_data().ok()?;
        let has = |word: &[u8]| table.windows(word.len()).any(|part| part == word);
        (has(b"begincid") && !has(b"beginbf")).then(|| CMap::parse(&table, |_| None)).flatten()
    });
    tables.collect()
}

/// Returns the meanings of a character collection's numbers (ISO 32000-1, 9.10.2), for the first font
/// whose codes are such numbers and which has no table of its own.
fn collection(fonts: &[Dict<'_>]) -> Option<CMap> {
    let family = fonts.iter().filter(|font| !font.contains_key("ToUnicode")).find_map(|font| {
        let encoding = font.get::<Name<'_>>("Encoding")?;
        let info = font
            .get::<Array<'_>>("DescendantFonts")?
            .iter::<Dict<'_>>()
            .next()?
            .get::<Dict<'_>>("CIDSystemInfo")?;
        let text = |name: &str| Some(info.get::<PdfString<'_>>(name)?.as_bytes().to_vec());
        let family = CidFamily::from_registry_ordering(&text("Registry")?, &text("Ordering")?);
        encoding.as_str().starts_with("Identity").then_some(family)
    })?;
    let table = load_embedded(family.ucs2_cmap()?)?;
    CMap::parse(table, load_embedded)
}

/// Returns the symbol font of a PDF font name, which may have a subset prefix and a style suffix.
fn symbol_font(name: &str) -> Option<Symbols> {
    let name = strip_subset_prefix(name).to_ascii_lowercase();
    let name = name.split(['-', ',']).next().unwrap_or_default();
    let name = name.strip_suffix("mt").unwrap_or(name);
    let spaced = name.replace("dings2", "dings 2").replace("dings3", "dings 3");
    Symbols::by_name(name).or_else(|| Symbols::by_name(&spaced))
}

/// Returns the letters of a ligature of TeX's fonts (T1 and OT1), whose codes are control characters
/// elsewhere.
fn tex_ligature(c: char, glyph: &Drawn<'_>) -> Option<&'static str> {
    Some(match c {
        '\u{1b}' | '\u{b}' => "ff",
        '\u{1c}' | '\u{c}' => "fi",
        '\u{1d}' => "fl",
        // Other programs write an invisible one at a line's end.
        '\r' if is_inked(glyph) => "fl",
        '\u{1e}' | '\u{e}' => "ffi",
        '\u{1f}' | '\u{f}' => "ffl",
        _ => return None,
    })
}

/// Whether a glyph leaves anything on the page.
pub(super) fn is_inked(glyph: &Drawn<'_>) -> bool {
    match glyph {
        Drawn::Outline(outline) => !outline.outline().elements().is_empty(),
        Drawn::Type3(_) => true,
    }
}

/// Whether a character has a meaning of its own: no control character, no private use, no U+FFFD or
/// U+FEFF.
pub(super) fn is_text(c: char) -> bool {
    !c.is_control()
        && !matches!(c, '\u{e000}'..='\u{f8ff}' | '\u{f0000}'.. | '\u{fffd}' | '\u{feff}')
}

/// Returns the letters of a ligature, or of a form that an Arabic letter has at its place in a word.
fn plain_letters(c: char) -> Option<Cow<'static, str>> {
    Some(match c {
        '\u{fb00}'..='\u{fb06}' | '\u{fb50}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}' => {
            let normal = ComposingNormalizerBorrowed::new_nfkc();
            let letters = normal.normalize_iter(std::iter::once(c));
            // A vowel sign that stands alone is on a space.
            Cow::Owned(letters.skip_while(|letter| *letter == ' ').collect())
        }
        '\u{a0}' => " ".into(),
        // Bullets of symbol fonts, as office programs write them.
        '\u{f0b7}' | '\u{f0a7}' => "•".into(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_is_its_letter() {
        for (forms, letters) in [
            ("\u{fe80}\u{fe8e}\u{fe92}\u{feb0}\u{fee0}\u{fef4}\u{fefc}", "ءابزليلا"),
            // Persian and Urdu; vowel signs; a whole word.
            ("\u{fb56}\u{fb7c}\u{fb8e}\u{fb94}\u{fbfe}\u{fbaf}", "پچکگیے"),
            ("\u{fe76}\u{fe77}\u{fc60}", "\u{64e}\u{640}\u{64e}\u{64e}\u{651}"),
            ("\u{fdf2}", "الله"),
            ("\u{fb00}\u{fb01}\u{fb02}\u{fb03}\u{fb04}\u{fb05}\u{fb06}", "fffiflffifflstst"),
        ] {
            let plain: String = forms.chars().map(|form| plain_letters(form).unwrap()).collect();
            assert_eq!(plain, letters, "{forms}");
        }
        assert_eq!(['a', '\u{fefd}', '\u{feff}'].map(plain_letters), [None, None, None]);
    }
}
