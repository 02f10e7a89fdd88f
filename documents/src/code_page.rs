//! Choice among encodings with one byte for each letter: those that the detector knows, and those
//! of DOS and old Macs, which it does not know.

use std::borrow::Cow;

use encoding_rs::{Encoding, MACINTOSH, SHIFT_JIS, UTF_8, WINDOWS_1252};

/// Characters of code page 437 for the bytes from 128 on.
const CP437: &str = "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{a0}";

/// Characters of code page 850 (Western Europe) for the bytes from 128 on.
const CP850: &str = "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜø£Ø×ƒáíóúñÑªº¿®¬½¼¡«»░▒▓│┤ÁÂÀ©╣║╗╝¢¥┐└┴┬├─┼ãÃ╚╔╩╦╠═╬¤ðÐÊËÈıÍÎÏ┘┌█▄¦Ì▀ÓßÔÒõÕµþÞÚÛÙýÝ¯´\u{ad}±‗¾¶§÷¸°¨·¹³²■\u{a0}";

/// Characters of code page 852 (Central Europe) for the bytes from 128 on.
const CP852: &str = "ÇüéâäůćçłëŐőîŹÄĆÉĹĺôöĽľŚśÖÜŤťŁ×čáíóúĄąŽžĘę¬źČş«»░▒▓│┤ÁÂĚŞ╣║╗╝Żż┐└┴┬├─┼Ăă╚╔╩╦╠═╬¤đĐĎËďŇÍÎě┘┌█▄ŢŮ▀ÓßÔŃńňŠšŔÚŕŰýÝţ´\u{ad}˝˛ˇ˘§÷¸°¨˙űŘř■\u{a0}";

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
    pub(crate) fn new(known: &'static Encoding, bytes: &[u8]) -> Self {
        if known == UTF_8 {
            return Self::Known(known);
        }
        let first = bytes.iter().position(|byte| !byte.is_ascii()).unwrap_or(0);
        let from = first.saturating_sub(64);
        let telling = &bytes[from..bytes.len().min(from + (64 << 10))];
        if known.is_single_byte() && is_shift_jis(telling) {
            return Self::Known(SHIFT_JIS);
        }
        let pages = [
            Self::Known(known),
            Self::Dos(CP437),
            Self::Dos(CP850),
            Self::Known(MACINTOSH),
            Self::Dos(CP852),
        ];
        let fitting = pages.into_iter().find(|page| fits(&page.decode(telling)));
        fitting.unwrap_or(Self::Known(known))
    }

    /// Chooses the likeliest encoding of file names in an archive. Names in a Western European code
    /// page of DOS can be valid in Windows-1252 too, but their letters lie where Windows-1252 has
    /// signs: below 0xa6.
    pub(crate) fn of_names(known: &'static Encoding, names: &[u8]) -> Self {
        let is_dos = |byte: &u8| byte.is_ascii() || matches!(byte, 0x80..=0xa5 | 0xe1);
        let text = Self::Known(known).decode(names);
        let is_western = text.chars().all(|c| !c.is_alphabetic() || c.is_ascii() || is_latin(c));
        let has_signs = text.chars().any(|c| !c.is_ascii() && !is_latin(c));
        if known.is_single_byte()
            && names.iter().all(is_dos)
            && is_western
            && (has_signs || known == WINDOWS_1252)
            && !is_shift_jis(names)
        {
            let is_latin_alone =
                |text: &str| fits(text) && text.chars().all(|c| c.is_ascii() || is_latin(c));
            let mut pages = [Self::Dos(CP437), Self::Dos(CP850)].into_iter();
            if let Some(page) = pages.find(|page| is_latin_alone(&page.decode(names))) {
                return page;
            }
        }
        Self::new(known, names)
    }

    /// Decodes bytes.
    pub(crate) fn decode(self, bytes: &[u8]) -> Cow<'_, str> {
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

/// Returns whether bytes are words of Japanese in Shift_JIS: all characters are kana, signs, or the
/// more common half of the ideographs. The detector mistakes short texts for other encodings.
fn is_shift_jis(bytes: &[u8]) -> bool {
    let (mut at, mut wide) = (0, 0);
    while let Some(lead) = bytes.get(at) {
        if lead.is_ascii() {
            at += 1;
            continue;
        }
        let from = at;
        while let Some([lead @ 0x80..=0xff, trail, ..]) = bytes.get(at..) {
            let is_common = match lead {
                0x81 | 0x82 | 0x87 | 0x89..=0x97 => true,
                0x83 => *trail <= 0x96,
                0x88 => *trail >= 0x9f,
                0x98 => *trail <= 0x72,
                _ => false,
            };
            if !is_common || !matches!(trail, 0x40..=0x7e | 0x80..=0xfc) {
                return false;
            }
            at += 2;
        }
        // An accented letter and the next letter of a Western word look like one ideograph.
        let is_letter = |at: Option<usize>| {
            at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_alphabetic)
        };
        if at < from + 2
            || at == from + 2 && (is_letter(from.checked_sub(1)) || is_letter(Some(at)))
        {
            return false;
        }
        wide += (at - from) / 2;
    }
    wide > 1
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
            // Signs that stand behind a word, or apart.
            '™' | '¦' => !after.is_some_and(|c| c.is_alphabetic()),
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
        let read = |bytes: &[u8]| {
            CodePage::new(encoding::detect_encoding(bytes), bytes).decode(bytes).into_owned()
        };
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
        assert_eq!(read(b"\xa6lu\x9cou\x9fk\xec k\x85\xe5"), "Žluťoučký kůň");
        for words in ["資料.txt", "日本語", "契約書のご案内.txt", "㈱テスト様", "見積 A4 東京都"]
        {
            let (bytes, ..) = SHIFT_JIS.encode(words);
            assert_eq!(read(&bytes), words);
        }
        let (japanese, ..) = encoding_rs::SHIFT_JIS.encode("潮は一日に二度満ちて、誰も待たない。");
        assert_eq!(read(&japanese), "潮は一日に二度満ちて、誰も待たない。");
    }

    #[test]
    fn file_names_are_likelier_in_code_pages_of_dos() {
        let read = |bytes: &[u8]| {
            CodePage::of_names(encoding::detect_encoding(bytes), bytes).decode(bytes).into_owned()
        };
        assert_eq!(read(b"\x8erger mit \x99l.txt"), "Ärger mit Öl.txt");
        assert_eq!(read(b"\x9abersicht.txt\nGr\x94\xe1e.txt"), "Übersicht.txt\nGröße.txt");
        assert_eq!(read(b"r\x82sum\x82.txt"), "résumé.txt");
        assert_eq!(read(b"K\x9bbmand.txt"), "Købmand.txt");
        assert_eq!(read(b"\xdcbersicht Gr\xf6\xdfe.txt"), "Übersicht Größe.txt");
        assert_eq!(read(b"\x84\xae\xa3\xae\xa2\xae\xe0.txt"), "Договор.txt");
    }
}
