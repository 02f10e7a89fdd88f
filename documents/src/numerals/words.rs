//! Numbers as Latin letters, Roman numerals, words and Chinese numerals.

/// Returns a, …, z, aa, bb, …
pub(crate) fn letters(count: usize) -> String {
    let place = count.saturating_sub(1);
    let letter = u8::try_from(place % 26).unwrap_or(0) + b'a';
    char::from(letter).to_string().repeat((place / 26 + 1).min(10))
}

/// Returns a, …, z, aa, ab, …
pub(crate) fn latin(mut count: usize) -> String {
    let mut text = String::new();
    while count > 0 {
        text.insert_str(0, &letters((count - 1) % 26 + 1));
        count = (count - 1) / 26;
    }
    text
}

/// Returns i, ii, iii, iv, …; at most 3,999.
pub(crate) fn roman(count: usize) -> String {
    const SIGNS: [(usize, &str); 13] = [
        (1000, "m"),
        (900, "cm"),
        (500, "d"),
        (400, "cd"),
        (100, "c"),
        (90, "xc"),
        (50, "l"),
        (40, "xl"),
        (10, "x"),
        (9, "ix"),
        (5, "v"),
        (4, "iv"),
        (1, "i"),
    ];
    let (mut left, mut text) = (count.min(3_999), String::new());
    for (value, sign) in SIGNS {
        text.push_str(&sign.repeat(left / value));
        left %= value;
    }
    text
}

/// Returns ①, ②, …; digits from 51 on.
pub(crate) fn circled(count: usize) -> String {
    let first = match count {
        0 => 0x24ea,
        1..=20 => 0x2460 - 1,
        21..=35 => 0x3251 - 21,
        36..=50 => 0x32b1 - 36,
        _ => return count.to_string(),
    };
    let code = u32::try_from(count).ok().and_then(|count| char::from_u32(first + count));
    code.map_or_else(|| count.to_string(), String::from)
}

/// Returns 一, 十二, 二百零三; digits from ten thousand on.
pub(crate) fn chinese(count: usize) -> String {
    const DIGITS: [&str; 10] = ["零", "一", "二", "三", "四", "五", "六", "七", "八", "九"];
    if !(1..10_000).contains(&count) {
        return count.to_string();
    }
    let (mut text, mut gap) = (String::new(), false);
    for (unit, sign) in [(1_000, "千"), (100, "百"), (10, "十"), (1, "")] {
        let digit = count / unit % 10;
        if digit == 0 {
            gap = !text.is_empty();
            continue;
        }
        if gap {
            text.push_str(DIGITS[0]);
        }
        gap = false;
        // Ten to nineteen have no 一 before the 十.
        if !(digit == 1 && unit == 10 && text.is_empty()) {
            text.push_str(DIGITS[digit]);
        }
        text.push_str(sign);
    }
    text
}

/// Returns 1st, 2nd, 3rd, 11th.
pub(crate) fn ordinal(count: usize) -> String {
    let ending = match (count % 10, count % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{count}{ending}")
}

const ONES: [&str; 20] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];
const TENS: [&str; 10] =
    ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];

/// Returns One, Twenty-One; digits from a hundred on.
pub(crate) fn cardinal_words(count: usize) -> String {
    let words = match count {
        0..20 => ONES[count].to_owned(),
        20..100 if count.is_multiple_of(10) => TENS[count / 10].to_owned(),
        20..100 => format!("{}-{}", TENS[count / 10], ONES[count % 10]),
        _ => return count.to_string(),
    };
    capitalized(&words)
}

/// Returns First, Twenty-Second; digits from a hundred on.
pub(crate) fn ordinal_words(count: usize) -> String {
    if count >= 100 {
        return ordinal(count);
    }
    let words = cardinal_words(count).to_lowercase();
    let (before, last) = match words.rsplit_once('-') {
        Some((before, last)) => (format!("{before}-"), last),
        None => (String::new(), &*words),
    };
    let last = match last {
        "one" => "first".to_owned(),
        "two" => "second".to_owned(),
        "three" => "third".to_owned(),
        "five" => "fifth".to_owned(),
        "eight" => "eighth".to_owned(),
        "nine" => "ninth".to_owned(),
        "twelve" => "twelfth".to_owned(),
        other => match other.strip_suffix('y') {
            Some(stem) => format!("{stem}ieth"),
            None => format!("{other}th"),
        },
    };
    capitalized(&format!("{before}{last}"))
}

fn capitalized(words: &str) -> String {
    let mut letters = words.chars();
    let first = letters.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_words_and_signs() {
        let chinese: Vec<String> = [1, 10, 12, 20, 105, 110, 2_003].map(chinese).into();
        assert_eq!(chinese, ["一", "十", "十二", "二十", "一百零五", "一百一十", "二千零三"]);
        assert_eq!([1, 20, 21, 36, 51].map(circled), ["①", "⑳", "㉑", "㊱", "51"]);
        assert_eq!(
            [1, 2, 3, 4, 11, 22, 113].map(ordinal),
            ["1st", "2nd", "3rd", "4th", "11th", "22nd", "113th"]
        );
        assert_eq!(
            [1, 9, 12, 20, 21, 40, 100].map(ordinal_words),
            ["First", "Ninth", "Twelfth", "Twentieth", "Twenty-first", "Fortieth", "100th"]
        );
        assert_eq!([7, 30, 42].map(cardinal_words), ["Seven", "Thirty", "Forty-two"]);
    }
}
