//! The place of a quotation in a text.
//!
//! A quote is searched for unchanged, and then with both sides folded:
//!
//! | sign | folded |
//! |---|---|
//! | spaces of any kind, line ends | left out; one between two digits |
//! | hyphens, dashes, the minus sign | left out between letters, as at the end of a line; else `-` |
//! | quotation marks, apostrophes | `'`, and left out at the ends of the quote |
//! | ligatures, `…` | their letters, three points |
//! | soft hyphens, characters without width | left out |

use std::str::CharIndices;

use memchr::memmem;

/// Fewest letters and digits of a quote. A shorter one occurs in many texts and proves nothing.
pub const MIN_LETTERS: usize = 12;

/// Folded bytes between two marks, so that a place is found without folding all the text before it.
const MARK: usize = 16 << 10;

/// A text that is searched for quotes.
#[derive(Debug)]
pub struct Searched<'t> {
    text: &'t str,
    folded: String,
    /// Places in the folded text, and the rest of the text at each.
    marks: Vec<(usize, Folded<'t>)>,
}

impl<'t> Searched<'t> {
    /// Folds the text, once for all quotes.
    pub fn new(text: &'t str) -> Self {
        let (mut folded, mut marks) = (String::new(), Vec::new());
        let mut letters = Folded::new(text);
        loop {
            if folded.len() >= marks.len() * MARK {
                marks.push((folded.len(), letters.clone()));
            }
            let Some((_, letter)) = letters.next() else { break };
            folded.push(letter);
        }
        Self { text, folded, marks }
    }

    /// Returns the first place of a quote in bytes; `None` if it is missing or shorter than
    /// [`MIN_LETTERS`].
    pub fn find(&self, quote: &str) -> Option<usize> {
        if !is_long_enough(quote) {
            return None;
        }
        let quote = quote.trim();
        if let Some(at) = find(self.text, quote, char::is_alphanumeric) {
            return Some(at);
        }
        let folded: String = Folded::new(quote).map(|(_, letter)| letter).collect();
        let folded = folded.trim_matches('\'');
        // A hyphen within a word is left out of the text.
        let cut = folded.strip_prefix('-').filter(|it| it.starts_with(char::is_alphabetic));
        let at = find(&self.folded, cut.unwrap_or(folded), |it| it.is_ascii_digit())?;
        let mark = self.marks.partition_point(|(begins, _)| *begins <= at).checked_sub(1)?;
        let (begins, letters) = self.marks.get(mark)?;
        let before = self.folded[*begins..at].chars().count();
        letters.clone().nth(before).map(|(at, _)| at)
    }
}

/// Finds the first place of a quote at which it does not cut a number. A hyphen behind a character
/// that `joins` is no minus sign.
fn find(text: &str, quote: &str, joins: fn(char) -> bool) -> Option<usize> {
    let stands = |at: &usize| {
        let (before, behind) = (&text[..*at], &text[*at + quote.len()..]);
        !begins_in_number(before, quote, joins) && !ends_in_number(quote, behind)
    };
    memmem::find_iter(text.as_bytes(), quote).find(stands)
}

/// Returns whether a number at the quote's beginning begins before it: `-119` is not `119`.
fn begins_in_number(before: &str, quote: &str, joins: fn(char) -> bool) -> bool {
    let mut before = before.chars().rev();
    let (last, behind_it) = (before.next(), before.next());
    let is_digit = |letter: Option<char>| letter.is_some_and(|it| it.is_ascii_digit());
    quote.starts_with(|it: char| it.is_ascii_digit())
        && match last.map(kind) {
            Some(Kind::Hyphen) => !behind_it.is_some_and(joins),
            Some(Kind::Letter('.' | ',')) => is_digit(behind_it),
            _ => is_digit(last),
        }
}

/// Returns whether a number at the quote's end continues behind it: `1,000` is not `1,000,000`.
fn ends_in_number(quote: &str, behind: &str) -> bool {
    let mut behind = behind.chars();
    let (first, next) = (behind.next(), behind.next());
    let is_digit = |letter: Option<char>| letter.is_some_and(|it| it.is_ascii_digit());
    quote.ends_with(|it: char| it.is_ascii_digit())
        && (is_digit(first) || matches!(first, Some('.' | ',')) && is_digit(next))
}

/// Returns whether a quote has [`MIN_LETTERS`].
pub fn is_long_enough(quote: &str) -> bool {
    quote.chars().flat_map(parts).filter(|letter| letter.is_alphanumeric()).count() >= MIN_LETTERS
}

/// Returns the letters of a ligature; other characters unchanged.
fn parts(letter: char) -> impl Iterator<Item = char> + Clone {
    let text = match letter {
        'ﬀ' => "ff",
        'ﬁ' => "fi",
        'ﬂ' => "fl",
        'ﬃ' => "ffi",
        'ﬄ' => "ffl",
        'ﬅ' | 'ﬆ' => "st",
        'ĳ' => "ij",
        'Ĳ' => "IJ",
        '…' => "...",
        _ => "",
    };
    text.chars().chain(text.is_empty().then_some(letter))
}

/// The treatment of a character in folding.
enum Kind {
    Nothing,
    Space,
    Hyphen,
    Letter(char),
}

fn kind(letter: char) -> Kind {
    match letter {
        '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' => Kind::Nothing,
        '-' | '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{fe63}' | '\u{ff0d}' => Kind::Hyphen,
        '"'
        | '`'
        | '´'
        | '«'
        | '»'
        | '\u{2018}'..='\u{201f}'
        | '‹'
        | '›'
        | '\u{2032}'
        | '\u{2033}' => Kind::Letter('\''),
        letter if letter.is_whitespace() => Kind::Space,
        letter => Kind::Letter(letter),
    }
}

/// Iterator over the folded characters of a text, each with its place in the text.
#[derive(Debug, Clone)]
struct Folded<'t> {
    rest: CharIndices<'t>,
    /// Characters to return before the rest: of a ligature, or behind omitted ones.
    ready: std::collections::VecDeque<(usize, char)>,
    /// The last character returned.
    last: Option<char>,
}

impl<'t> Folded<'t> {
    fn new(text: &'t str) -> Self {
        Self { rest: text.char_indices(), ready: Default::default(), last: None }
    }

    /// Reads up to the next character that is kept; decides on the spaces and hyphens before it.
    fn read(&mut self) {
        let (mut space, mut hyphens) = (None, Vec::new());
        for (at, letter) in self.rest.by_ref() {
            match kind(letter) {
                Kind::Nothing => {}
                Kind::Space => drop(space.get_or_insert(at)),
                Kind::Hyphen => hyphens.push(at),
                Kind::Letter(letter) => {
                    let is =
                        |of: fn(char) -> bool, next: char| self.last.is_some_and(of) && of(next);
                    let first = parts(letter).next().unwrap_or(letter);
                    if !hyphens.is_empty() {
                        if !is(char::is_alphabetic, first) {
                            self.ready.extend(hyphens.iter().map(|at| (*at, '-')));
                        }
                    } else if let Some(at) = space
                        && is(|it| it.is_ascii_digit(), first)
                    {
                        self.ready.push_back((at, ' '));
                    }
                    self.ready.extend(parts(letter).map(|letter| (at, letter)));
                    return;
                }
            }
        }
    }
}

impl Iterator for Folded<'_> {
    type Item = (usize, char);

    fn next(&mut self) -> Option<Self::Item> {
        if self.ready.is_empty() {
            self.read();
        }
        let next = self.ready.pop_front()?;
        self.last = Some(next.1);
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_only_looks_different_is_found_where_it_stands() {
        let text = "Die Vereinba-\nrung vom 3.\u{a0}Mai gilt.\n\nThe ﬁrst\u{a0}oﬃce said: “It’s well-\nknown”, total −119,00 EUR (2026\u{2011}11\u{2011}28), 12 345 pieces sold…";
        let searched = Searched::new(text);
        for (quote, stands_at) in [
            ("Die Vereinbarung vom 3. Mai gilt.", "Die"),
            ("rung vom 3. Mai gilt", "rung"),
            ("The first office said", "The ﬁrst"),
            ("\"It's well-known\"", "It’s"),
            ("said: 'It's wellknown', total -119,00", "said"),
            ("total -119,00 EUR (2026-11-28)", "total"),
            ("-119,00 EUR (2026–11–28)", "−119"),
            ("-known”, total -119,00", "known"),
            ("12 345 pieces sold...", "12 345"),
        ] {
            let at = searched.find(quote);
            assert_eq!(at, text.find(stands_at), "{quote}");
        }
        for made_up in [
            "total 119,00 EUR (2026-11-28)",
            "total -119,00 EUR (20261128)",
            "1 2345 pieces sold",
            "12345 pieces sold",
            "119,00 EUR (2026-11-29)",
            "119,00 EUR (2026-11-28)",
            "known”, total -119",
            "The second office said",
            "the first office said",
            "well-known",
            "",
            "- ' -",
        ] {
            assert_eq!(searched.find(made_up), None, "{made_up}");
        }
    }

    #[test]
    fn a_number_at_the_end_of_a_quote_is_whole() {
        let searched =
            Searched::new("net price of 1119,00 EUR and in all 1,000,000 or 5.5 percent.");
        for whole in ["1119,00 EUR and in all", "and in all 1,000,000", "1,000,000 or 5.5 percent"]
        {
            assert!(searched.find(whole).is_some(), "{whole}");
        }
        for part in
            ["119,00 EUR and in all", "00 EUR and in all", "and in all 1,000", "EUR and in all 1"]
        {
            assert_eq!(searched.find(part), None, "{part}");
        }
        assert_eq!(searched.find("or 5.5 percent and more"), None);
    }

    #[test]
    fn a_place_is_found_behind_the_marks_of_a_long_text() {
        let text = "Zur oﬃziellen Vereinba-\nrung – 12 345 Stück. ".repeat(4_000);
        let at = text.len() - 1_000;
        let at = at - at % 10;
        let at = text.ceil_char_boundary(at);
        let text = format!("{}\nThe ﬁrst oﬃce said so{}", &text[..at], &text[at..]);
        let searched = Searched::new(&text);
        assert!(searched.marks.len() > 5, "{} marks", searched.marks.len());
        assert_eq!(searched.find("The first office said so"), Some(at + 1));
    }

    const WORDS: [&str; 24] = [
        "office",
        "first",
        "floor",
        "affluent",
        "waffle",
        "harbour",
        "tide",
        "agreement",
        "invoice",
        "Größe",
        "don't",
        "well-known",
        "Summe",
        "119,00",
        "EUR",
        "2026-11-28",
        "ship",
        "12",
        "345",
        "“quoted”",
        "Vereinbarung",
        "efficient",
        "customer",
        "(net)",
    ];

    /// Prints words as a PDF does: broken lines and words, ligatures, other spaces, hyphens and
    /// quotation marks.
    fn printed(words: &[usize], chances: &[u8]) -> String {
        let mut chance = chances.iter().copied().cycle();
        let mut lot = |of: u8| chance.next().unwrap_or_default() % of;
        let mut text = String::new();
        for word in words {
            let mut word = WORDS[*word].to_owned();
            for (plain, ligature) in
                [("ffi", "ﬃ"), ("ffl", "ﬄ"), ("ff", "ﬀ"), ("fi", "ﬁ"), ("fl", "ﬂ")]
            {
                if lot(2) == 0 {
                    word = word.replace(plain, ligature);
                }
            }
            if lot(2) == 0 {
                word = word.replace('\'', "’").replace('-', "\u{2011}");
            }
            let letters: Vec<char> = word.chars().collect();
            if letters.len() > 5 && letters.iter().all(|it| it.is_alphabetic()) && lot(3) == 0 {
                let (one, other) = letters.split_at(letters.len() / 2);
                let hyphen = if lot(2) == 0 { "-\n" } else { "\u{ad}" };
                word = one.iter().collect::<String>() + hyphen + &other.iter().collect::<String>();
            }
            text.push_str(&word);
            text.push_str(match lot(5) {
                0 => "\n",
                1 => "\u{a0}",
                2 => "  ",
                _ => " ",
            });
        }
        text
    }

    fn spoken(words: &[usize]) -> String {
        words
            .iter()
            .map(|word| WORDS[*word])
            .collect::<Vec<_>>()
            .join(" ")
            .replace(['“', '”'], "\"")
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn every_true_quote_is_found_and_none_that_is_made_up(
            words in prop::collection::vec(0..WORDS.len(), 20..60),
            chances in prop::collection::vec(any::<u8>(), 50),
            from in 0..14usize,
            count in 4..6usize,
            changed in 0..4usize,
        ) {
            let text = printed(&words, &chances);
            let searched = Searched::new(&text);
            let mut quote = words[from..from + count].to_vec();
            let true_one = spoken(&quote);
            if is_long_enough(&true_one) {
                prop_assert!(searched.find(&true_one).is_some(), "{true_one} in {text}");
            }
            // One word of the quote is changed.
            quote[changed] = (quote[changed] + 1) % WORDS.len();
            let occurs = words.windows(count).any(|window| window == quote);
            if !occurs {
                prop_assert_eq!(searched.find(&spoken(&quote)), None);
            }
        }

        #[test]
        fn no_text_and_no_quote_makes_it_panic(text in ".{0,80}", quote in ".{0,40}") {
            let searched = Searched::new(&text);
            if let Some(at) = searched.find(&quote) {
                prop_assert!(text.is_char_boundary(at));
            }
            let all = searched.find(&text);
            prop_assert!(all.is_some() || !is_long_enough(&text));
        }
    }
}
