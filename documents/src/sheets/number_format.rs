//! Numbers as a sheet shows them, by their format code: `0.0%`, `#,##0.00;(#,##0.00)`, `00000`
//! (ECMA-376 part 1, 18.8.31).

use super::native_digits::NativeDigits;

/// Significant digits that are shown at most.
const DIGITS: usize = 15;

/// Longest format code in bytes; longer ones are ignored.
const MAX_CODE: usize = 500;

/// The number format of a style.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum NumberFormat {
    /// No format.
    General,
    /// A date, a time of day, or both: the number of decimals of its seconds, and whether it has a day.
    Date(usize, bool),
    /// A duration, with the number of decimals of its seconds.
    Duration(usize),
    /// Sections for different values.
    Code(Vec<Section>),
}

/// One section of a code.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Section {
    condition: Option<(String, f64)>,
    /// Its format, if it is one of dates or durations.
    time: Option<Box<NumberFormat>>,
    digits: NativeDigits,
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq)]
enum Piece {
    Literal(String),
    /// `0`, `#` or `?`.
    Digit(char),
    Point,
    Comma,
    Percent,
    /// An exponent; `true` for `E+`, which also writes a plus sign.
    Exponent(bool),
    Slash,
    Text,
    General,
}

impl NumberFormat {
    /// Returns a format by its standard number. Standard formats have no code in the file.
    pub(super) fn built_in(id: u32) -> Self {
        let code = match id {
            1 => "0",
            2 => "0.00",
            3 => "#,##0",
            4 => "#,##0.00",
            5 | 6 => "$#,##0;-$#,##0",
            7 | 8 => "$#,##0.00;-$#,##0.00",
            9 => "0%",
            10 => "0.00%",
            11 => "0.00E+00",
            12 => "# ?/?",
            13 => "# ??/??",
            18..=21 | 45 => return Self::Date(0, false),
            14..=22 | 27..=36 | 50..=58 => return Self::Date(0, true),
            37 | 38 => "#,##0;(#,##0)",
            39 | 40 => "#,##0.00;(#,##0.00)",
            41 | 42 => "#,##0;-#,##0;\"-\"",
            43 | 44 => "#,##0.00;-#,##0.00;\"-\"",
            46 => return Self::Duration(0),
            47 => return Self::Date(1, false),
            48 => "##0.0E+0",
            _ => return Self::General,
        };
        Self::parse(code)
    }

    /// Parses a format code.
    pub(super) fn parse(code: &str) -> Self {
        if code.len() > MAX_CODE || code.trim().eq_ignore_ascii_case("general") || code == "@" {
            return Self::General;
        }
        let mut sections = split_sections(code);
        let first = sections.next().unwrap_or_default();
        let other = |code| Section { time: time(code).map(Box::new), ..Section::parse(code) };
        time(first).unwrap_or_else(|| {
            Self::Code(std::iter::once(Section::parse(first)).chain(sections.map(other)).collect())
        })
    }

    /// Returns the section for a number, and whether it says that the number is negative.
    fn section_for(&self, value: f64) -> Option<(&Section, bool)> {
        let Self::Code(sections) = self else { return None };
        if !value.is_finite() {
            return None;
        }
        let numbers: Vec<&Section> =
            sections.iter().filter(|it| !it.pieces.contains(&Piece::Text)).collect();
        let is_met = |section: &Section| match &section.condition {
            Some((sign, bound)) => match &**sign {
                "<" => value < *bound,
                "<=" => value <= *bound,
                ">" => value > *bound,
                ">=" => value >= *bound,
                "<>" => value != *bound,
                _ => value == *bound,
            },
            None => true,
        };
        let has_conditions = numbers.iter().any(|section| section.condition.is_some());
        Some(match &numbers[..] {
            [] => return None,
            many if has_conditions => {
                let met = *many.iter().find(|it| is_met(it)).or_else(|| many.last())?;
                (met, met.is_for_negatives())
            }
            [only] => (*only, false),
            [_, negative, ..] if value < 0.0 => (*negative, true),
            [_, _, zero, ..] if value == 0.0 => (*zero, false),
            [positive, ..] => (*positive, false),
        })
    }

    /// Returns the format of a number that is shown as a date although others are not.
    pub(super) fn time_for(&self, value: f64) -> Option<&Self> {
        self.section_for(value)?.0.time.as_deref()
    }

    /// Formats a number. Returns `None` if it is shown without a format.
    pub(super) fn format_number(&self, value: f64) -> Option<String> {
        let (section, says_sign) = self.section_for(value)?;
        let (text, is_zero) = section.format_value(value.abs());
        let sign = if value < 0.0 && !says_sign && !is_zero { "-" } else { "" };
        Some(format!("{sign}{}", text.trim()))
    }
}

impl NumberFormat {
    /// Formats a text by the section for texts: one with an `@`, or else the fourth. Returns `None`
    /// if it is shown unchanged.
    pub(super) fn format_text(&self, words: &str) -> Option<String> {
        let Self::Code(sections) = self else { return None };
        let for_texts = sections.iter().rfind(|it| it.pieces.contains(&Piece::Text));
        let section = for_texts.or_else(|| sections.get(3))?;
        let piece = |piece: &Piece| match piece {
            Piece::Literal(words) => words.clone(),
            Piece::Text => words.to_owned(),
            _ => String::new(),
        };
        Some(section.pieces.iter().map(piece).collect())
    }
}

/// Splits a code at the semicolons between its sections.
fn split_sections(code: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(code);
    std::iter::from_fn(move || {
        let code = rest?;
        let mut letters = code.char_indices();
        let end = std::iter::from_fn(|| {
            let (at, letter) = letters.next()?;
            match letter {
                '"' => drop(letters.find(|(_, c)| *c == '"')),
                '[' => drop(letters.find(|(_, c)| *c == ']')),
                '\\' | '_' | '*' => drop(letters.next()),
                _ => {}
            }
            Some((at, letter))
        })
        .find(|(_, letter)| *letter == ';');
        rest = end.map(|(at, _)| &code[at + 1..]);
        Some(end.map_or(code, |(at, _)| &code[..at]))
    })
}

/// Returns the format of a section of dates or durations; `None` for others.
fn time(code: &str) -> Option<NumberFormat> {
    let mut letters = code.chars();
    let (mut is_date, mut has_day) = (false, false);
    let names_general = code.to_ascii_lowercase().contains("general");
    while let Some(letter) = letters.next() {
        match letter {
            '"' => drop(letters.find(|c| *c == '"')),
            '\\' | '_' | '*' => drop(letters.next()),
            '[' => {
                let inner: String = letters.by_ref().take_while(|c| *c != ']').collect();
                let inner = inner.to_ascii_lowercase();
                if !inner.is_empty()
                    && ['h', 'm', 's'].iter().any(|c| inner.chars().all(|it| it == *c))
                {
                    return Some(NumberFormat::Duration(decimals_of_seconds(code)));
                }
            }
            // The year of an era, as in `ggge`; `E+` is an exponent.
            'e' | 'E' if !letters.as_str().starts_with(['+', '-']) && !names_general => {
                (is_date, has_day) = (true, true);
            }
            'y' | 'Y' | 'd' | 'D' => (is_date, has_day) = (true, true),
            'h' | 'H' | 'm' | 'M' | 's' | 'S' => is_date = true,
            _ => {}
        }
    }
    is_date.then(|| NumberFormat::Date(decimals_of_seconds(code), has_day))
}

/// Returns the number of decimals of the seconds in a code, as in `mm:ss.000`: at most three.
fn decimals_of_seconds(code: &str) -> usize {
    let code = code.to_ascii_lowercase().replace("[s]", "s").replace("[ss]", "s");
    let decimals = code.split_once("s.").map(|(_, rest)| rest.bytes().take_while(|it| *it == b'0'));
    decimals.map_or(0, |decimals| decimals.take(3).count())
}

impl Section {
    fn parse(code: &str) -> Self {
        let mut section = Self::default();
        let mut letters = code.chars().peekable();
        let literal = |section: &mut Section, text: &str| match section.pieces.last_mut() {
            Some(Piece::Literal(before)) => before.push_str(text),
            _ => section.pieces.push(Piece::Literal(text.to_owned())),
        };
        while let Some(letter) = letters.next() {
            match letter {
                '"' => {
                    let text: String = letters.by_ref().take_while(|c| *c != '"').collect();
                    literal(&mut section, &text);
                }
                '\\' => {
                    if let Some(next) = letters.next() {
                        literal(&mut section, next.encode_utf8(&mut [0; 4]));
                    }
                }
                // A space as wide as the next character, or a fill with it.
                '_' | '*' => drop(letters.next()),
                '[' => {
                    let inner: String = letters.by_ref().take_while(|c| *c != ']').collect();
                    section.digits.take(&inner);
                    if let Some(currency) = inner.strip_prefix('$') {
                        literal(&mut section, currency.split('-').next().unwrap_or_default());
                    } else if inner.starts_with(['<', '>', '=']) {
                        let bound = inner.trim_start_matches(['<', '>', '=']);
                        let sign = &inner[..inner.len() - bound.len()];
                        section.condition =
                            bound.parse().ok().map(|bound| (sign.to_owned(), bound));
                    }
                }
                '0' | '#' | '?' => section.pieces.push(Piece::Digit(letter)),
                '.' => section.pieces.push(Piece::Point),
                ',' => section.pieces.push(Piece::Comma),
                '%' => section.pieces.push(Piece::Percent),
                '/' => section.pieces.push(Piece::Slash),
                '@' => section.pieces.push(Piece::Text),
                'E' | 'e' if letters.peek().is_some_and(|c| matches!(c, '+' | '-')) => {
                    section.pieces.push(Piece::Exponent(letters.next() == Some('+')));
                }
                'G' | 'g'
                    if "eneral"
                        .chars()
                        .eq(letters.clone().take(6).map(|c| c.to_ascii_lowercase())) =>
                {
                    letters.by_ref().take(6).for_each(drop);
                    section.pieces.push(Piece::General);
                }
                other => literal(&mut section, other.encode_utf8(&mut [0; 4])),
            }
        }
        section
    }

    /// Returns whether its condition selects negative numbers. Then the section itself shows the
    /// sign.
    fn is_for_negatives(&self) -> bool {
        matches!(&self.condition, Some((sign, bound)) if matches!(&**sign, "<" | "<=") && *bound == 0.0)
    }

    /// Formats the absolute value of a number. Also returns whether it is shown as zero.
    fn format_value(&self, value: f64) -> (String, bool) {
        let mut value = value;
        for piece in &self.pieces {
            if *piece == Piece::Percent {
                value *= 100.0;
            }
        }
        if self.pieces.contains(&Piece::General) {
            let piece = |piece: &Piece| match piece {
                Piece::Literal(words) => words.clone(),
                Piece::General => self.digits.spell(&format_general(value)),
                Piece::Percent => "%".to_owned(),
                _ => String::new(),
            };
            return (self.pieces.iter().map(piece).collect(), false);
        }
        if self.pieces.contains(&Piece::Slash) {
            let text = self.format_fraction(value);
            return (self.digits.replace(&text), is_zero(&text));
        }
        let is_digit = |piece: &Piece| matches!(piece, Piece::Digit(_));
        let exponent_at = self.pieces.iter().position(|it| matches!(it, Piece::Exponent(_)));
        let end = exponent_at.unwrap_or(self.pieces.len());
        let point = self.pieces[..end].iter().position(|it| *it == Piece::Point).unwrap_or(end);
        let whole: Vec<char> = digits(&self.pieces[..point]);
        let decimals: Vec<char> = digits(&self.pieces[point..end]);
        let last = self.pieces[..end].iter().rposition(is_digit);
        let is_grouped = self.pieces[..point].iter().enumerate().any(|(at, piece)| {
            *piece == Piece::Comma
                && self.pieces[..at].iter().any(is_digit)
                && self.pieces[at..point].iter().any(is_digit)
        });
        // Each comma behind the last digit divides by a thousand.
        let last_whole = self.pieces[..point].iter().rposition(is_digit);
        let scale = [last_whole.map(|at| (at, point)), last.map(|at| (at, end))];
        let mut commas = 0;
        for (from, to) in scale.into_iter().flatten().collect::<std::collections::BTreeSet<_>>() {
            commas += self.pieces[from..to].iter().filter(|it| **it == Piece::Comma).count();
        }
        if last_whole == last && commas > 0 {
            commas = self.pieces[last.unwrap_or(0)..end]
                .iter()
                .filter(|it| **it == Piece::Comma)
                .count();
        }
        for _ in 0..commas {
            value /= 1_000.0;
        }
        let mut exponent = 0_i32;
        if exponent_at.is_some() && value > 0.0 {
            exponent = magnitude(value, whole.len().max(1));
            value /= 10_f64.powi(exponent);
            let (integer, _) = round_decimals(value, decimals.len());
            if integer.len() > whole.len().max(1) {
                (value, exponent) = (value / 10.0, exponent + 1);
            }
        }
        let (integer, fraction) = round_decimals(value, decimals.len());
        let integer = if integer == "0" && !whole.contains(&'0') { String::new() } else { integer };
        self.write_pieces(&integer, &fraction, (whole.len(), is_grouped), exponent)
    }

    /// Writes the pieces with the digits in their places. Also returns whether the digits are all zero.
    fn write_pieces(
        &self,
        integer: &str,
        fraction: &str,
        (places, is_grouped): (usize, bool),
        exponent: i32,
    ) -> (String, bool) {
        let digits: Vec<char> = integer.chars().collect();
        let (mut text, mut shown) = (String::new(), String::new());
        // Digits in literals stay as they are.
        let mut write = |text: &mut String, digits: &str| {
            shown.push_str(digits);
            text.push_str(&self.digits.replace(digits));
        };
        let (mut place, mut decimal, mut behind, mut in_exponent) = (0, 0, false, false);
        let kept = kept_decimals(&self.pieces, fraction);
        for piece in &self.pieces {
            match piece {
                Piece::Literal(words) => text.push_str(words),
                Piece::Percent => text.push('%'),
                Piece::Point if !in_exponent => {
                    behind = true;
                    if kept > 0 {
                        text.push('.');
                    }
                }
                Piece::Exponent(plus) => {
                    in_exponent = true;
                    let sign = if exponent < 0 {
                        "-"
                    } else if *plus {
                        "+"
                    } else {
                        ""
                    };
                    text.push_str(&format!("E{sign}"));
                    let width = self
                        .pieces
                        .iter()
                        .rev()
                        .take_while(|it| matches!(it, Piece::Digit(_)))
                        .count();
                    write(&mut text, &format!("{:0width$}", exponent.abs()));
                }
                Piece::Digit(_) if in_exponent => {}
                Piece::Digit(kind) if !behind => {
                    let from_right = places - place;
                    // The first place takes all surplus digits.
                    let more = if place == 0 { digits.len().saturating_sub(places) } else { 0 };
                    let at = digits.len() as isize - from_right as isize;
                    let first = at - more as isize;
                    for at in first..=at {
                        let right = digits.len() as isize - at;
                        match usize::try_from(at).ok().and_then(|at| digits.get(at)) {
                            Some(digit) => write(&mut text, digit.encode_utf8(&mut [0; 4])),
                            None if *kind == '0' => write(&mut text, "0"),
                            None if *kind == '?' => text.push(' '),
                            None => continue,
                        }
                        if is_grouped && right > 1 && (right - 1) % 3 == 0 {
                            text.push(',');
                        }
                    }
                    place += 1;
                }
                Piece::Digit(_) => {
                    if decimal < kept {
                        write(&mut text, fraction.get(decimal..=decimal).unwrap_or("0"));
                    }
                    decimal += 1;
                }
                Piece::Comma | Piece::Point | Piece::Slash | Piece::Text | Piece::General => {}
            }
        }
        let is_zero = is_zero(&shown);
        (text, is_zero)
    }

    /// Formats a whole number and a fraction.
    fn format_fraction(&self, value: f64) -> String {
        let slash = self.pieces.iter().position(|it| *it == Piece::Slash).unwrap_or(0);
        let after: String = self.pieces[slash..]
            .iter()
            .filter_map(|piece| match piece {
                Piece::Digit(digit) => Some(digit.to_string()),
                Piece::Literal(words) => Some(words.clone()),
                _ => None,
            })
            .collect();
        let has_whole = digits(&self.pieces[..slash]).len() > 1
            && self.pieces[..slash]
                .iter()
                .any(|it| matches!(it, Piece::Literal(words) if words.contains(' ')));
        let fixed: Option<u64> = after.trim().parse().ok().filter(|it| *it > 0);
        let most = 10_u64
            .pow(u32::try_from(digits(&self.pieces[slash..]).len().clamp(1, 4)).unwrap_or(1))
            - 1;
        let (whole, rest) = if has_whole { (value.trunc(), value.fract()) } else { (0.0, value) };
        let near = |below: u64| ((rest * below as f64).round(), below);
        let error = |(above, below): (f64, u64)| (rest - above / below as f64).abs();
        let best = match fixed {
            Some(below) => near(below),
            None => (1..=most).map(near).fold((rest.round(), 1), |best, next| {
                if error(next) + 1e-12 < error(best) { next } else { best }
            }),
        };
        let (above, below) = best;
        let (whole, above) =
            if has_whole && above >= below as f64 { (whole + 1.0, 0.0) } else { (whole, above) };
        match (has_whole, above == 0.0, whole == 0.0) {
            (true, true, _) => format!("{whole}"),
            (true, false, false) => format!("{whole} {above}/{below}"),
            _ => format!("{above}/{below}"),
        }
    }
}

/// Whether no digit of a text is other than zero.
fn is_zero(text: &str) -> bool {
    !text.contains(|c: char| ('1'..='9').contains(&c))
}

fn digits(pieces: &[Piece]) -> Vec<char> {
    let digit = |piece: &Piece| match piece {
        Piece::Digit(kind) => Some(*kind),
        _ => None,
    };
    pieces.iter().filter_map(digit).collect()
}

/// Returns the number of decimals to write: the required ones, and further ones up to the last
/// nonzero digit.
fn kept_decimals(pieces: &[Piece], fraction: &str) -> usize {
    let point = pieces.iter().position(|it| *it == Piece::Point).unwrap_or(pieces.len());
    let end = pieces.iter().position(|it| matches!(it, Piece::Exponent(_))).unwrap_or(pieces.len());
    let kinds = digits(pieces.get(point..end).unwrap_or_default());
    let must = kinds.iter().rposition(|kind| *kind == '0').map_or(0, |at| at + 1);
    must.max(fraction.trim_end_matches('0').len()).min(kinds.len())
}

/// Returns the power of ten that leaves one digit before the point; with several digits in the
/// code, a multiple of their number.
fn magnitude(value: f64, digits: usize) -> i32 {
    // At most 308.
    let exponent = value.log10().floor() as i32;
    let digits = i32::try_from(digits).unwrap_or(1);
    if digits > 1 { exponent.div_euclid(digits) * digits } else { exponent }
}

/// Returns the digits before and behind the point. Rounds half up, in decimal: the number is first
/// written with fifteen digits, so that its binary representation has no effect.
fn round_decimals(value: f64, decimals: usize) -> (String, String) {
    let written = format!("{:.*e}", DIGITS - 1, value);
    let (mantissa, exponent) = written.split_once('e').unwrap_or((&written, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let mut digits: Vec<u8> =
        mantissa.bytes().filter(u8::is_ascii_digit).map(|it| it - b'0').collect();
    // The position of the point among the digits.
    let mut point = exponent + 1;
    while point < 1 {
        digits.insert(0, 0);
        point += 1;
    }
    let point = usize::try_from(point).unwrap_or(1);
    digits.resize(digits.len().max(point), 0);
    let kept = point + decimals;
    if kept < digits.len() {
        let up = digits[kept] >= 5;
        digits.truncate(kept);
        if up {
            let mut at = kept;
            loop {
                if at == 0 {
                    digits.insert(0, 1);
                    return split(&digits, point + 1, decimals);
                }
                at -= 1;
                if digits[at] < 9 {
                    digits[at] += 1;
                    break;
                }
                digits[at] = 0;
            }
        }
    }
    split(&digits, point, decimals)
}

fn split(digits: &[u8], point: usize, decimals: usize) -> (String, String) {
    let text = |digits: &[u8]| digits.iter().map(|it| char::from(b'0' + it)).collect::<String>();
    let whole = text(&digits[..point.min(digits.len())]);
    let whole = whole.trim_start_matches('0');
    let mut fraction = text(digits.get(point..).unwrap_or_default());
    while fraction.len() < decimals {
        fraction.push('0');
    }
    (if whole.is_empty() { "0" } else { whole }.to_owned(), fraction)
}

/// Formats as `1E-10`; the exponent has at least two digits.
fn format_scientific(value: f64) -> String {
    let text = format!("{value:E}");
    let (number, exponent) = text.split_once('E').unwrap_or((&text, "0"));
    let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |it| ('-', it));
    format!("{number}E{sign}{digits:0>2}")
}

/// Formats a number with fifteen digits, which removes binary rounding errors.
pub(super) fn format_general(value: f64) -> String {
    let short = format!("{:.*e}", DIGITS - 1, value).parse().ok();
    // The largest number has no larger one to be rounded to.
    let short: f64 = short.filter(|short: &f64| short.is_finite()).unwrap_or(value);
    let size = short.abs();
    if size == 0.0 {
        return "0".to_owned();
    }
    if !(1e-9..1e21).contains(&size) { format_scientific(short) } else { short.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_by_their_codes() {
        for (code, value, expected) in [
            ("0.0%", 0.075, "7.5%"),
            ("0%", -0.126, "-13%"),
            ("\"$\"#,##0.00", 1_234.5, "$1,234.50"),
            ("#,##0", 1_234_567.5, "1,234,568"),
            ("#,##0", 12.0, "12"),
            ("00000", 1_234.0, "01234"),
            ("#,##0.0,,\" M\"", 12_500_000.0, "12.5 M"),
            ("0,", 12_345.0, "12"),
            ("#,##0.00;(#,##0.00)", -42.5, "(42.50)"),
            ("#,##0.00_);[Red](#,##0.00)", -1_042.5, "(1,042.50)"),
            ("0;-0;\"none\"", 0.0, "none"),
            ("0\" kg\"", 75.0, "75 kg"),
            ("0.00E+00", 0.000_012, "1.20E-05"),
            ("##0.0E+0", 12_345.0, "12.3E+3"),
            ("# ?/?", 0.5, "1/2"),
            ("# ?/?", 2.25, "2 1/4"),
            ("# ??/16", 0.5, "8/16"),
            ("[$€-407] #,##0.00", 3.0, "€ 3.00"),
            ("#,##0.00 [$zł-415]", 3.5, "3.50 zł"),
            ("000\\-00\\-0000", 123_456_789.0, "123-45-6789"),
            ("(000) 000-0000", 5_551_234_567.0, "(555) 123-4567"),
            ("[<1]0.00;0", 0.25, "0.25"),
            ("[Red][<0]-0.0;0.00", -3.25, "-3.3"),
            ("[<0](0.0);0.00", -3.25, "(3.3)"),
            ("[<5]0.0;0.00", -3.25, "-3.3"),
            ("[<1]0.00;0", 7.25, "7"),
            ("0.##", 1.5, "1.5"),
            ("0.00", 2.675, "2.68"),
            ("0.00", 9.999, "10.00"),
            ("#.0", 0.5, ".5"),
            ("0.00", -0.001, "0.00"),
            ("\"No. \"0", 7.0, "No. 7"),
            ("General\" EUR\"", 100.0, "100 EUR"),
            (";;;", 5.0, ""),
            ("0\" m2\"", -0.001, "0 m2"),
        ] {
            assert_eq!(
                NumberFormat::parse(code).format_number(value).as_deref(),
                Some(expected),
                "{code}"
            );
        }
        assert_eq!(NumberFormat::built_in(10).format_number(0.125).as_deref(), Some("12.50%"));
    }

    /// A code may come from a hostile file.
    #[test]
    fn no_code_and_no_number_is_too_odd() {
        let signs: Vec<char> = "0#?.,%/E+-;[]<>=1@\"\\_* $yG".chars().collect();
        let mut dice = 7_u64;
        let mut next = |below: usize| {
            dice = dice
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(dice >> 33).unwrap() % below
        };
        for _ in 0..20_000 {
            let length = next(12);
            let code: String = (0..length).map(|_| signs[next(signs.len())]).collect();
            let format = NumberFormat::parse(&code);
            for value in [0.0, -1.5, 1e300, -1e-300, 12_345.678, f64::MAX, f64::NAN] {
                let _ = format.format_number(value);
            }
        }
    }

    #[test]
    fn dates_are_told_from_numbers() {
        for (code, is_date) in [
            ("yyyy-mm-dd", true),
            ("[$-407]d. mmmm yyyy;@", true),
            ("h:mm AM/PM", true),
            ("[$-411]gge\"年\"", true),
            ("0.0E+0", false),
            ("General\" e\"", false),
            ("0\" days\"", false),
            ("[Red]0.00", false),
            ("General", false),
        ] {
            assert_eq!(
                matches!(NumberFormat::parse(code), NumberFormat::Date(..)),
                is_date,
                "{code}"
            );
        }
        assert_eq!(NumberFormat::parse("[h]:mm:ss"), NumberFormat::Duration(0));
        assert_eq!(NumberFormat::parse("[h]:mm:ss.00"), NumberFormat::Duration(2));
        assert_eq!(NumberFormat::parse("mm:ss.000"), NumberFormat::Date(3, false));
        assert_eq!(format_general(-0.0), "0");
        for (code, shown) in [
            ("@\" km\"", Some("five km")),
            ("0.0;-0.0;0;\"<\"@\">\"", Some("<five>")),
            (";;;", Some("")),
            ("0;;;", Some("")),
            ("0.0;-0.0", None),
            ("General", None),
        ] {
            assert_eq!(NumberFormat::parse(code).format_text("five").as_deref(), shown, "{code}");
        }
        assert_eq!(NumberFormat::parse("@"), NumberFormat::General);
    }

    #[test]
    fn binary_adds_nothing() {
        assert_eq!(format_general(0.1 + 0.2), "0.3");
        assert_eq!(
            (format_general(75.0), format_general(1e25), format_general(0.0)),
            ("75".into(), "1E+25".into(), "0".into())
        );
    }
}
