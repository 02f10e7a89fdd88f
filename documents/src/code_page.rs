//! Choice among encodings with one byte for each letter: those that the detector knows, and those
//! of DOS and old Macs, which it does not know.

use std::borrow::Cow;

use encoding_rs::{
    Encoding, MACINTOSH, SHIFT_JIS, UTF_8, WINDOWS_1251, WINDOWS_1252, X_MAC_CYRILLIC,
};

/// Characters of code page 437 for the bytes from 128 on.
const CP437: &str = "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{a0}";

/// Characters of code page 850 (Western Europe) for the bytes from 128 on.
const CP850: &str = "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜø£Ø×ƒáíóúñÑªº¿®¬½¼¡«»░▒▓│┤ÁÂÀ©╣║╗╝¢¥┐└┴┬├─┼ãÃ╚╔╩╦╠═╬¤ðÐÊËÈıÍÎÏ┘┌█▄¦Ì▀ÓßÔÒõÕµþÞÚÛÙýÝ¯´\u{ad}±‗¾¶§÷¸°¨·¹³²■\u{a0}";

/// Characters of code page 852 (Central Europe) for the bytes from 128 on.
const CP852: &str = "ÇüéâäůćçłëŐőîŹÄĆÉĹĺôöĽľŚśÖÜŤťŁ×čáíóúĄąŽžĘę¬źČş«»░▒▓│┤ÁÂĚŞ╣║╗╝Żż┐└┴┬├─┼Ăă╚╔╩╦╠═╬¤đĐĎËďŇÍÎě┘┌█▄ŢŮ▀ÓßÔŃńňŠšŔÚŕŰýÝţ´\u{ad}˝˛ˇ˘§÷¸°¨˙űŘř■\u{a0}";

/// Characters of code page 37 (EBCDIC) for the bytes from 64 on. Below are control characters.
const CP037: &str = " \u{a0}âäàáãåçñ¢.<(+|&éêëèíîïìß!$*);¬-/ÂÄÀÁÃÅÇÑ¦,%_>?øÉÊËÈÍÎÏÌ`:#@'=\"Øabcdefghi«»ðýþ±°jklmnopqrªºæ¸Æ¤µ~stuvwxyz¡¿ÐÝÞ®^£¥·©§¶¼½¾[]¯¨´×{ABCDEFGHI\u{ad}ôöòóõ}JKLMNOPQR¹ûüùúÿ\\÷STUVWXYZ²ÔÖÒÓÕ0123456789³ÛÜÙÚ\u{9f}";

/// An encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CodePage {
    /// An encoding of the Web.
    Known(&'static Encoding),
    /// A code page of DOS, by its characters for the bytes from 128 on.
    Dos(&'static str),
    /// The code page of mainframes, in which no letter is where ASCII has it.
    Ebcdic,
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
        if is_ebcdic(&bytes[..bytes.len().min(64 << 10)]) {
            return Self::Ebcdic;
        }
        if known.is_single_byte() && is_shift_jis(telling) {
            return Self::Known(SHIFT_JIS);
        }
        let known = if has_accents_alone(telling) && !known.is_single_byte() {
            WINDOWS_1252
        } else {
            known
        };
        let misfits = |encoding| count_misfits(&Self::Known(encoding).decode(telling));
        if known == WINDOWS_1251 && misfits(X_MAC_CYRILLIC) < misfits(WINDOWS_1251) {
            return Self::Known(X_MAC_CYRILLIC);
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
            Self::Ebcdic => {
                let letters: Vec<char> = CP037.chars().collect();
                let letter = |byte: &u8| match byte {
                    0x05 => '\t',
                    0x15 | 0x25 => '\n',
                    0x0c | 0x0d => char::from(*byte),
                    byte => {
                        let place = byte.checked_sub(64).map(usize::from);
                        let letter = place.and_then(|place| letters.get(place)).copied();
                        letter.unwrap_or(char::REPLACEMENT_CHARACTER)
                    }
                };
                bytes.iter().map(letter).collect::<String>().into()
            }
        }
    }
}

/// Returns whether bytes are words in EBCDIC: letters, digits, signs and line ends where that has them,
/// and nowhere a space or line feed of ASCII.
fn is_ebcdic(bytes: &[u8]) -> bool {
    let is_word = |byte: &&u8| matches!(byte, 0x81..=0x89 | 0x91..=0x99 | 0xa2..=0xa9 | 0xc1..=0xc9 | 0xd1..=0xd9 | 0xe2..=0xe9 | 0xf0..=0xf9);
    let is_sign = |byte: &&u8| matches!(byte, 0x05 | 0x0c | 0x0d | 0x15 | 0x25 | 0x40 | 0x4b..=0x50 | 0x5b..=0x61 | 0x6b..=0x6f | 0x7a..=0x7f);
    let (words, signs) =
        (bytes.iter().filter(is_word).count(), bytes.iter().filter(is_sign).count());
    let spaces = bytes.iter().filter(|byte| **byte == 0x40).count();
    !bytes.contains(&b' ')
        && !bytes.contains(&b'\n')
        && (words + signs) * 50 >= bytes.len() * 49
        && words * 3 >= bytes.len()
        && spaces * 20 >= bytes.len()
}

/// Returns whether the bytes outside of ASCII are few and each stands between two ASCII letters. Such an
/// accented letter and the next one of a Western word look like one ideograph.
fn has_accents_alone(bytes: &[u8]) -> bool {
    let is_letter =
        |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_alphabetic);
    let mut accents = (0_usize..).zip(bytes).filter(|(_, byte)| !byte.is_ascii());
    accents.clone().count() * 8 <= bytes.len()
        && accents.all(|(at, _)| is_letter(at.checked_sub(1)) && is_letter(Some(at + 1)))
}

/// Counts what does not belong into words: capitals behind small letters, and signs beside letters.
fn count_misfits(text: &str) -> usize {
    let is_sign = |c: char| {
        !c.is_ascii()
            && !c.is_alphabetic()
            && !matches!(c, '\u{a0}' | '«' | '»' | '‘'..='„' | '–' | '—' | '…' | '№')
    };
    let letters: Vec<char> = text.chars().collect();
    let misfits = letters.windows(2).filter(|pair| match pair {
        [a, b] if a.is_alphabetic() && b.is_alphabetic() => a.is_lowercase() && b.is_uppercase(),
        [a, b] => (a.is_alphabetic() && is_sign(*b)) || (is_sign(*a) && b.is_alphabetic()),
        _ => false,
    });
    misfits.count()
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
        assert_eq!(read(b"it is gr\x81n\n"), "it is grün\n");
        let mac = b"\x8f\xf0\xe8\xeb\xe8\xe2, \xed\xe0\xf1\xf2\xee\xdf\xf9\xe8\xe9 \xe8 \xee\xf2\xeb\xe8\xe2";
        assert_eq!(read(mac), "Прилив, настоящий и отлив");
        let quoted = b"\xab\xcf\xf0\xe8\xeb\xe8\xe2\xbb \x97 \xee\xe1\xfa\xff\xe2\xeb\xe5\xed\xe8\xe5, \xcc\xee\xf1\xc3\xee\xf0\xd1\xf3\xe4";
        assert_eq!(read(quoted), "«Прилив» — объявление, МосГорСуд");
        assert_eq!(
            read(b"\xc8\x89\x87\x88@\xa3\x89\x84\x85z@\xf7M\xf1\xf2]k@\xd8\xa4\x81\xa8@\xf3\x15\xc5\x82\x82K"),
            "High tide: 7(12), Quay 3\nEbb."
        );
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
