//! Fonts of signs: what their codes mean. Offices write them as letters of the private range, from
//! U+F020 to U+F0FF, which say nothing without the font.

/// A font of signs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Symbols(Table);

/// The fonts of a run of text, of which one may be of signs.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Fonts {
    /// Of codes, which only a font of signs gives a meaning: the one that there is.
    codes: Option<Symbols>,
    /// Of plain letters, too.
    letters: Option<Symbols>,
}

/// Signs of codes that follow each other, from the first one.
type Table = &'static [(u8, &'static str)];

/// By names in lower case.
const FONTS: [(&str, Table); 4] = [
    ("symbol", SYMBOL),
    ("wingdings", WINGDINGS),
    ("wingdings 2", WINGDINGS_2),
    ("webdings", WEBDINGS),
];

/// Adobe's encoding of the font Symbol, whole; parts of large brackets as Unicode has them.
const SYMBOL: Table = &[
    (0x20, " !∀#∃%&∋()∗+,−./0123456789:;<=>?"),
    (0x40, "≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_"),
    (0x60, "‾αβχδεφγηιϕκλµνοπθρστυϖωξψζ{|}∼"),
    (0xa0, "€ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…⏐⎯↵"),
    (0xc0, "ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓"),
    (0xe0, "◊⟨®©™∑⎛⎜⎝⎡⎢⎣⎧⎨⎩⎪"),
    (0xf1, "⟩∫⌠⎮⌡⎞⎟⎠⎤⎥⎦⎫⎬⎭"),
];

/// Without ornaments. Boxes are those of a form, which is what they are used for.
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

/// Ticks, crosses, boxes, arrows, and what stands before addresses.
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
    /// The font of a name, if it is one of those known here.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let name = name.trim().to_ascii_lowercase();
        FONTS.into_iter().find(|(known, _)| *known == name).map(|(_, table)| Self(table))
    }

    /// Whether only its font knows what a letter means.
    pub(crate) fn is_code(letter: char) -> bool {
        matches!(letter, '\u{e000}'..='\u{f8ff}')
    }

    /// What a letter means in this font: itself, unless it is of the private range. What is not
    /// known is U+FFFD, so that it is seen that something is missing.
    fn meaning(self, letter: char) -> char {
        if !Self::is_code(letter) {
            return letter;
        }
        let code = u32::from(letter).checked_sub(0xf000).and_then(|code| u8::try_from(code).ok());
        code.and_then(|code| self.sign(code)).unwrap_or(char::REPLACEMENT_CHARACTER)
    }

    /// The same of a code that may also be written without the private range.
    pub(crate) fn meaning_of_code(self, code: char) -> char {
        match u8::try_from(code) {
            Ok(code @ 0x20..) => self.sign(code).unwrap_or(char::REPLACEMENT_CHARACTER),
            _ => self.meaning(code),
        }
    }

    /// The same of text, whose letters are codes as well. One of no meaning here stays what it is.
    fn meaning_of_letter(self, letter: char) -> char {
        match u8::try_from(letter) {
            Ok(code) => self.sign(code).unwrap_or(letter),
            _ => self.meaning(letter),
        }
    }

    fn sign(self, code: u8) -> Option<char> {
        let (first, signs) = self.0.iter().rfind(|(first, _)| *first <= code)?;
        signs.chars().nth(usize::from(code - first))
    }
}

impl Fonts {
    /// The font of plain letters and those of other scripts, by their names.
    pub(crate) fn named(letters: Option<&str>, others: &[String]) -> Self {
        let letters = letters.and_then(Symbols::named);
        let other = || others.iter().find_map(|name| Symbols::named(name));
        Self { codes: letters.or_else(other), letters }
    }

    /// What a text in these fonts means.
    pub(crate) fn read(self, text: String) -> String {
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
        let symbols = Symbols::named(font).unwrap();
        let letters = codes.iter().filter_map(|code| char::from_u32(0xf000 + u32::from(*code)));
        letters.map(|letter| symbols.meaning(letter)).collect()
    }

    /// The first and last of each row: a sign too few or too many would shift them.
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
        assert!(Symbols::named("Wingdings 3").is_none() && Symbols::named("Arial").is_none());
    }
}
