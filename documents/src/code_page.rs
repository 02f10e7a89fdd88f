//! Choice among encodings with one byte for each letter: those that the detector knows, and those
//! of DOS and old Macs, which it does not know.

use std::borrow::Cow;

use encoding_rs::{Encoding, MACINTOSH, UTF_8};

/// Characters of code page 437 for the bytes from 128 on.
const CP437: &str = "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{a0}";

/// Characters of code page 850 (Western Europe) for the bytes from 128 on.
const CP850: &str = "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜø£Ø×ƒáíóúñÑªº¿®¬½¼¡«»░▒▓│┤ÁÂÀ©╣║╗╝¢¥┐└┴┬├─┼ãÃ╚╔╩╦╠═╬¤ðÐÊËÈıÍÎÏ┘┌█▄¦Ì▀ÓßÔÒõÕµþÞÚÛÙýÝ¯´\u{ad}±‗¾¶§÷¸°¨·¹³²■\u{a0}";

/// An encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CodePage {
    /// An encoding of the Web.
    Known(&'static Encoding),
    /// A code page of DOS, by its characters for the bytes from 128 on.
    Dos(&'static str),
}

impl CodePage {
    /// Chooses the likeliest encoding of bytes that are not UTF-8. `known` is the detector's guess.
    /// It is replaced only if it puts signs or letters of another alphabet between letters.
    pub(crate) fn of(known: &'static Encoding, bytes: &[u8]) -> Self {
        if known == UTF_8 {
            return Self::Known(known);
        }
        let first = bytes.iter().position(|byte| !byte.is_ascii()).unwrap_or(0);
        let from = first.saturating_sub(64);
        let telling = &bytes[from..bytes.len().min(from + (64 << 10))];
        let pages =
            [Self::Known(known), Self::Dos(CP437), Self::Dos(CP850), Self::Known(MACINTOSH)];
        let fitting = pages.into_iter().find(|page| fits(&page.decoded(telling)));
        fitting.unwrap_or(Self::Known(known))
    }

    /// Decodes bytes.
    pub(crate) fn decoded(self, bytes: &[u8]) -> Cow<'_, str> {
        match self {
            Self::Known(encoding) => encoding.decode_without_bom_handling(bytes).0,
            Self::Dos(letters) => {
                let letters: Vec<char> = letters.chars().collect();
                let letter = |byte: &u8| match byte.checked_sub(128) {
                    Some(place) => letters.get(usize::from(place)).copied().unwrap_or('\u{fffd}'),
                    None => char::from(*byte),
                };
                bytes.iter().map(letter).collect::<String>().into()
            }
        }
    }
}

/// Returns whether every character outside of ASCII is plausible: letters fit their neighbors, and
/// no sign is within a word.
fn fits(text: &str) -> bool {
    let letters: Vec<char> = text.chars().collect();
    let is_ascii_letter = |c: Option<&char>| c.is_some_and(char::is_ascii_alphabetic);
    letters.iter().enumerate().all(|(at, c)| {
        let (before, after) =
            (at.checked_sub(1).and_then(|at| letters.get(at)), letters.get(at + 1));
        let touches = is_ascii_letter(before) || is_ascii_letter(after);
        match c {
            c if c.is_ascii() || !touches => !matches!(c, '\u{80}'..='\u{9f}' | '\u{fffd}'),
            c if c.is_alphabetic() => {
                // A capital does not follow a small letter.
                let follows_small = before.is_some_and(|before| before.is_lowercase());
                is_latin(*c) && !(c.is_uppercase() && follows_small)
            }
            // A quotation mark of this kind begins a word.
            '‚' | '„' => !before.is_some_and(|c| c.is_alphabetic()),
            '’' | '‘' | '·' | '\u{ad}' | '–' | '—' => true,
            _ => {
                !(before.is_some_and(|c| c.is_alphabetic())
                    && after.is_some_and(|c| c.is_alphabetic()))
            }
        }
    })
}

/// Returns whether a letter outside of ASCII is Latin.
fn is_latin(c: char) -> bool {
    matches!(c, 'ª' | 'º' | 'À'..='\u{24f}' | '\u{1e00}'..='\u{1eff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding;

    #[test]
    fn what_detectors_do_not_know_is_told_by_its_words() {
        let read =
            |bytes: &[u8]| CodePage::of(encoding::of(bytes), bytes).decoded(bytes).into_owned();
        assert_eq!(
            read(b"M\x81he f\x81r Stra\xe1e und \x99l, 20 m\xfd"),
            "Mühe für Straße und Öl, 20 m²"
        );
        assert_eq!(read(b"\x9ab\x81ng: S\xc6o Tom\x82, \xab m\xfc"), "Übüng: São Tomé, ½ m³");
        assert_eq!(read(b"Se\x96or, \x87a va? \x8et\x8e, for\x90t"), "Señor, áa va? été, forêt");
        assert_eq!(
            read(b"Caf\xe9 cr\xe8me \x96 l\x92\xe9t\xe9, na\xefve \x80 5"),
            "Café crème – l’été, naïve € 5"
        );
        let cyrillic =
            b"\xcf\xf0\xe8\xeb\xe8\xe2 \xe8 \xee\xf2\xeb\xe8\xe2 \xe2 \xef\xee\xf0\xf2\xf3";
        assert_eq!(read(cyrillic), "Прилив и отлив в порту");
        let (japanese, ..) = encoding_rs::SHIFT_JIS.encode("潮は一日に二度満ちて、誰も待たない。");
        assert_eq!(read(&japanese), "潮は一日に二度満ちて、誰も待たない。");
    }
}
