//! Digits of East Asia and India in number formats: `[DBNum1]`, `[$-D000000]` (ECMA-376 part 1, 18.8.31).

use crate::numerals::write_number;

/// Systems by the numbers that formats have for them, from 2 on.
const SYSTEMS: [&str; 15] = [
    "arabic-indic",
    "persian",
    "hindiNumbers",
    "bengali",
    "gurmukhi",
    "gujarati",
    "oriya",
    "tamil",
    "telugu",
    "kannada",
    "malayalam",
    "thaiNumbers",
    "lao",
    "tibetan",
    "myanmar",
];

/// The digits of a section of a format.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct NativeDigits {
    /// The number behind `DBNum`; 0 for none.
    style: u8,
    /// The language and, in the highest byte, a system.
    locale: u32,
}

/// Digits from 0, ten to thousand, the powers of ten thousand.
struct Signs {
    digits: &'static str,
    units: &'static str,
    powers: &'static str,
    /// Whether zeros within a number are written.
    writes_zeros: bool,
    /// Whether a one before ten, hundred and thousand is written.
    writes_ones: bool,
}

impl NativeDigits {
    /// Reads what stands in square brackets in a code.
    pub(super) fn take(&mut self, inner: &str) {
        let style = inner.get(..5).filter(|name| name.eq_ignore_ascii_case("dbnum"));
        if style.is_some() {
            self.style = inner.get(5..).and_then(|style| style.parse().ok()).unwrap_or(0);
        }
        if let Some((_, locale)) = inner.strip_prefix('$').and_then(|it| it.split_once('-')) {
            self.locale = u32::from_str_radix(locale, 16).unwrap_or(0);
        }
    }

    /// Replaces the digits of a number one by one.
    pub(super) fn replace(self, number: &str) -> String {
        let digit = |c: char| match c.to_digit(10) {
            Some(digit) => self.digit(digit as usize),
            None => c.to_string(),
        };
        number.chars().map(digit).collect()
    }

    /// Writes a number of the general format: in East Asia, with the words for ten, hundred and so on.
    pub(super) fn spell(self, number: &str) -> String {
        let end = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
        let (whole, rest) = number.split_at(end);
        match self.signs().filter(|signs| whole.len() <= 4 * (signs.powers.chars().count() + 1)) {
            Some(signs) if !whole.is_empty() => signs.spell(whole) + &self.replace(rest),
            _ => self.replace(number),
        }
    }

    fn digit(self, digit: usize) -> String {
        let own = self.signs().and_then(|signs| signs.digits.chars().nth(digit));
        let system = (self.locale >> 24).checked_sub(2).and_then(|at| SYSTEMS.get(at as usize));
        own.map(String::from)
            .or_else(|| system.map(|name| write_number(digit, name)))
            .unwrap_or_else(|| digit.to_string())
    }

    fn signs(self) -> Option<Signs> {
        const FULL_WIDTH: &str = "０１２３４５６７８９";
        let (japanese, korean) = (self.locale & 0x3ff == 0x11, self.locale & 0x3ff == 0x12);
        let traditional = korean || matches!(self.locale & 0xffff, 0x404 | 0xc04 | 0x1404);
        let digits = match (self.style, traditional) {
            (1, _) => "〇一二三四五六七八九",
            (2, _) if japanese => "〇壱弐参四伍六七八九",
            (2, false) => "零壹贰叁肆伍陆柒捌玖",
            (2, true) => "零壹貳參肆伍陸柒捌玖",
            (3, _) => FULL_WIDTH,
            (4, _) if korean => "영일이삼사오육칠팔구",
            (4, _) => FULL_WIDTH,
            _ => return None,
        };
        let (units, powers) = match self.style {
            2 if japanese => ("拾百阡", "萬億兆"),
            2 if traditional => ("拾佰仟", "萬億兆"),
            2 => ("拾佰仟", "万亿兆"),
            4 if korean => ("십백천", "만억조"),
            _ if japanese => ("十百千", "万億兆"),
            _ if traditional => ("十百千", "萬億兆"),
            _ => ("十百千", "万亿兆"),
        };
        Some(Signs {
            digits,
            units,
            powers,
            writes_zeros: !japanese && !korean,
            writes_ones: !japanese || self.style == 2,
        })
    }
}

impl Signs {
    /// Writes the digits of a whole number.
    fn spell(&self, number: &str) -> String {
        let sign = |signs: &str, at: usize| signs.chars().nth(at).map(String::from);
        let (mut text, mut is_gap, mut is_open) = (String::new(), false, false);
        for (place, digit) in (0..number.len()).rev().zip(number.chars()) {
            let (unit, digit) = (place % 4, digit.to_digit(10).unwrap_or(0) as usize);
            if digit == 0 {
                is_gap = !text.is_empty();
            } else {
                if is_gap && self.writes_zeros {
                    text.extend(sign(self.digits, 0));
                }
                if digit > 1 || unit == 0 || self.writes_ones {
                    text.extend(sign(self.digits, digit));
                }
                text.extend(unit.checked_sub(1).and_then(|unit| sign(self.units, unit)));
                (is_gap, is_open) = (false, true);
            }
            if unit == 0 && is_open {
                text.extend((place / 4).checked_sub(1).and_then(|at| sign(self.powers, at)));
                is_open = false;
            }
        }
        if text.is_empty() { sign(self.digits, 0).unwrap_or_default() } else { text }
    }
}

#[cfg(test)]
mod tests {
    use crate::sheets::number_format::NumberFormat;

    #[test]
    fn numbers_are_written_in_the_signs_of_their_language() {
        for (code, value, expected) in [
            ("[DBNum1][$-804]General", 105.0, "一百〇五"),
            ("[DBNum1][$-804]General", 10_020_345.5, "一千〇二万〇三百四十五.五"),
            ("[DBNum1][$-804]General", -12.0, "-一十二"),
            ("[DBNum1][$-804]0", 2_026.0, "二〇二六"),
            ("[DBNum2][$-804]General\"元\"", 12_345.0, "壹万贰仟叁佰肆拾伍元"),
            ("[DBNum2][$-404]0.0", 34.5, "參肆.伍"),
            ("[DBNum3][$-804]General", 1_234.0, "１千２百３十４"),
            ("[DBNum1][$-411]General", 11_234.0, "一万千二百三十四"),
            ("[DBNum2][$-411]General", 1_234.0, "壱阡弐百参拾四"),
            ("[DBNum4][$-412]General", 1_034.0, "일천삼십사"),
            ("[$-D000000]0.0", 12.5, "๑๒.๕"),
            ("[$-2000000]#,##0", 1_234.0, "١,٢٣٤"),
            ("[DBNum1][$-804]General", 0.0, "〇"),
            ("[DBNum1][$-804]General", 1e20, "一〇〇〇〇〇〇〇〇〇〇〇〇〇〇〇〇〇〇〇〇"),
            ("[$-804]0", 7.0, "7"),
            ("[DBNum1][$-804]0.0\"m2\"", 12.5, "一二.五m2"),
            ("[$-D000000]General\" CO2\"", 12.0, "๑๒ CO2"),
            ("[$-D000000]0.0E+0", 12_000.0, "๑.๒E+๔"),
            ("[$-D000000]# ?/?", 2.25, "๒ ๑/๔"),
            ("[$-D000000]0", -0.1, "๐"),
            ("[$-D000000]0", -7.0, "-๗"),
        ] {
            let format = NumberFormat::parse(code);
            assert_eq!(format.format_number(value).as_deref(), Some(expected), "{code}");
        }
    }
}
