//! Fonts of symbols, and the meaning of their codes. Office programs write the codes as characters
//! from U+F020 to U+F0FF of the private use area, which have no meaning without the font.

/// A font of symbols.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Symbols(Table);

/// The fonts of a run of text.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Fonts {
    /// The symbol font for private-use codes, if there is any.
    codes: Option<Symbols>,
    /// The symbol font for plain letters too.
    letters: Option<Symbols>,
}

/// Rows of symbols for consecutive codes, each with its first code.
type Table = &'static [(u8, &'static str)];

/// Fonts by lowercase name.
const FONTS: [(&str, Table); 4] = [
    ("symbol", SYMBOL),
    ("wingdings", WINGDINGS),
    ("wingdings 2", WINGDINGS_2),
    ("webdings", WEBDINGS),
];

/// Adobe's complete encoding of the font Symbol; parts of large brackets as in Unicode.
const SYMBOL: Table = &[
    (0x20, " !∀#∃%&∋()∗+,−./0123456789:;<=>?"),
    (0x40, "≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_"),
    (0x60, "‾αβχδεφγηιϕκλµνοπθρστυϖωξψζ{|}∼"),
    (0xa0, "€ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…⏐⎯↵"),
    (0xc0, "ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓"),
    (0xe0, "◊⟨®©™∑⎛⎜⎝⎡⎢⎣⎧⎨⎩⎪"),
    (0xf1, "⟩∫⌠⎮⌡⎞⎟⎠⎤⎥⎦⎫⎬⎭"),
];

/// Without ornaments. Boxes become checkboxes, their usual purpose.
const WINGDINGS: Table = &[
    (0x20, " ✏✂✁👓🔔📖"),
    (0x28, "☎✆✉✉📪📫📬📭📁📂📄"),
    (0x36, "⌛⌨"),
    (0x3a, "💻"),
    (0x3c, "💾"),
    (0x3e, "✇✍"),
    (0x41, "✌👌👍👎☜☞☝☟✋☺😐☹💣☠⚐🚩✈☼💧❄"),
    (0x56, "✞"),
    (0x58, "✠✡☪☯ॐ☸♈♉♊♋♌♍♎♏♐♑♒♓&&●❍■□□❑❒⬧⧫◆❖⬥☒⍓⌘❀✿❝❞"),
    (0x80, "⓪①②③④⑤⑥⑦⑧⑨⑩⓿❶❷❸❹❺❻❼❽❾❿"),
    (0x9e, "·•▪○○○◉◎"),
    (0xa7, "▪☐"),
    (0xaa, "✦★✶✴✹✵"),
    (0xb1, "⌖⟡⌑"),
    (0xb5, "✪✰🕐🕑🕒🕓🕔🕕🕖🕗🕘🕙🕚🕛"),
    (0xd5, "⌫⌦"),
    (0xd8, "➢"),
    (0xdc, "➲"),
    (0xdf, "←→↑↓↖↗↙↘←➔↑↓↖↗↙↘⇦⇨⇧⇩⬄⇳⬁⬀⬃⬂▭▫✗✓☒☑"),
];

/// Ticks, crosses, boxes, numbers, bullets and stars.
const WINGDINGS_2: Table = &[
    (0x20, " "),
    (0x25, "✄✀☎☎"),
    (0x4f, "✗✓☒☑☒☒"),
    (0x69, "⓪①②③④⑤⑥⑦⑧⑨⑩⓿❶❷❸❹❺❻❼❽❾❿"),
    (0x95, "•●⚫⬤"),
    (0x9f, "◾■◼⬛☐"),
    (0xea, "★✶"),
];

/// Ticks, crosses, boxes, arrows, and signs before addresses.
const WEBDINGS: Table = &[
    (0x20, " "),
    (0x33, "⏴⏵⏶⏷⏪⏩⏮⏭⏸⏹⏺"),
    (0x48, "🏠"),
    (0x4c, "🔍"),
    (0x59, "♥"),
    (0x61, "✔"),
    (0x63, "☐"),
    (0x67, "■"),
    (0x69, "ℹ"),
    (0x6e, "⚫"),
    (0x72, "✗❓"),
    (0x9b, "✉"),
    (0xc5, "☎"),
    (0xc8, "📱☎"),
];

impl Symbols {
    /// Returns a font by its name, if known.
    pub(crate) fn by_name(name: &str) -> Option<Self> {
        let name = name.trim().to_ascii_lowercase();
        FONTS.into_iter().find(|(known, _)| *known == name).map(|(_, table)| Self(table))
    }

    /// Returns whether a character is in the private use area, and has a meaning only in its font.
    pub(crate) fn is_code(letter: char) -> bool {
        matches!(letter, '\u{e000}'..='\u{f8ff}')
    }

    /// Returns the meaning of a character: itself, unless it is in the private use area. An unknown
    /// one becomes U+FFFD, to show the gap.
    fn meaning(self, letter: char) -> char {
        if !Self::is_code(letter) {
            return letter;
        }
        let code = u32::from(letter).checked_sub(0xf000).and_then(|code| u8::try_from(code).ok());
        code.and_then(|code| self.sign_of_code(code)).unwrap_or(char::REPLACEMENT_CHARACTER)
    }

    /// Returns the meaning of a code that may also be written outside of the private use area.
    pub(crate) fn meaning_of_code(self, code: char) -> char {
        match u8::try_from(code) {
            Ok(code @ 0x20..) => self.sign_of_code(code).unwrap_or(char::REPLACEMENT_CHARACTER),
            _ => self.meaning(code),
        }
    }

    /// Returns the meaning of a letter of text. A letter without a meaning stays unchanged.
    fn meaning_of_letter(self, letter: char) -> char {
        match u8::try_from(letter) {
            Ok(code) => self.sign_of_code(code).unwrap_or(letter),
            _ => self.meaning(letter),
        }
    }

    fn sign_of_code(self, code: u8) -> Option<char> {
        let (first, signs) = self.0.iter().rfind(|(first, _)| *first <= code)?;
        signs.chars().nth(usize::from(code - first))
    }
}

impl Fonts {
    /// Finds symbol fonts by the names of the fonts for plain letters and for other scripts.
    pub(crate) fn by_names(letters: Option<&str>, others: &[String]) -> Self {
        let letters = letters.and_then(Symbols::by_name);
        let other = || others.iter().find_map(|name| Symbols::by_name(name));
        Self { codes: letters.or_else(other), letters }
    }

    /// Replaces the codes of a text by their meanings.
    pub(crate) fn decode(self, text: String) -> String {
        let Some(codes) = self.codes else { return text };
        let meaning = |letter: char| match self.letters {
            _ if Symbols::is_code(letter) => codes.meaning(letter),
            Some(letters) => letters.meaning_of_letter(letter),
            None => letter,
        };
        text.chars().map(meaning).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(font: &str, codes: &[u8]) -> String {
        let symbols = Symbols::by_name(font).unwrap();
        let letters = codes.iter().filter_map(|code| char::from_u32(0xf000 + u32::from(*code)));
        letters.map(|letter| symbols.meaning(letter)).collect()
    }

    /// Checks the first and last symbol of each row, because a missing or surplus one shifts the
    /// others.
    #[test]
    fn each_sign_has_its_code() {
        assert_eq!(read("Symbol", b" ?@_`m~\x7f"), " ?≅_‾µ∼\u{fffd}");
        let high =
            [0xa0, 0xa3, 0xb1, 0xbf, 0xc0, 0xce, 0xdf, 0xe0, 0xe5, 0xef, 0xf0, 0xf1, 0xf2, 0xfe];
        assert_eq!(read("symbol", &high), "€≤±↵ℵ∈⇓◊∑⎪\u{fffd}⟩∫⎭");
        assert_eq!(
            read("Wingdings", b" &'(27?AJLT]^ijlnouxz~"),
            " 📖\u{fffd}☎📄⌨✍✌☺☹❄☸♈♓&●■□◆☒⌘❞"
        );
        let high = [
            0x80, 0x95, 0x9f, 0xa5, 0xa8, 0xaf, 0xb6, 0xc2, 0xdf, 0xe0, 0xe8, 0xef, 0xf4, 0xfb,
            0xfc, 0xfd, 0xfe,
        ];
        assert_eq!(read("WINGDINGS", &high), "⓪❿•◎☐✵✰🕛←→➔⇦⇳✗✓☒☑");
        assert_eq!(read("Wingdings 2", b"OPRS~\xa3\xff"), "✗✓☑☒❿☐\u{fffd}");
        assert_eq!(read("Webdings", b"acr3=\xc5"), "✔☐✗⏴⏺☎");
        assert!(Symbols::by_name("Wingdings 3").is_none() && Symbols::by_name("Arial").is_none());
    }
}
