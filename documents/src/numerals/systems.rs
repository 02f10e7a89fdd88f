//! Systems of numbers, by the names of `ST_NumberFormat` (ECMA-376 part 1, 17.18.59). Systems of other
//! formats have the names of CSS.

use super::words::{
    cardinal_words, chinese, circled, latin, letters, ordinal, ordinal_words, roman,
};

/// Most digits of a zero-padded number.
const MAX_WIDTH: usize = 20;

/// Most repetitions of a sign.
const MAX_REPEATED: usize = 10;

/// Zeros of scripts whose digits follow in order.
const ZEROS: [(&str, char); 16] = [
    ("thaiNumbers", '๐'),
    ("hindiNumbers", '०'),
    ("arabic-indic", '٠'),
    ("persian", '۰'),
    ("bengali", '০'),
    ("gujarati", '૦'),
    ("gurmukhi", '੦'),
    ("kannada", '೦'),
    ("khmer", '០'),
    ("lao", '໐'),
    ("malayalam", '൦'),
    ("myanmar", '၀'),
    ("oriya", '୦'),
    ("tamil", '௦'),
    ("telugu", '౦'),
    ("tibetan", '༠'),
];

/// Digits that replace 0 to 9 one by one.
const DIGITS: [(&str, &str); 5] = [
    ("ideographDigital", "〇一二三四五六七八九"),
    ("japaneseDigitalTenThousand", "〇一二三四五六七八九"),
    ("taiwaneseDigital", "○一二三四五六七八九"),
    ("koreanDigital", "영일이삼사오육칠팔구"),
    ("koreanDigital2", "零一二三四五六七八九"),
];

/// Letters in the order of their alphabets. Digits follow the last one.
const ALPHABETS: [(&str, &str); 19] = [
    ("lower-greek", "αβγδεζηθικλμνξοπρστυφχψω"),
    ("upper-greek", "ΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩ"),
    ("russianLower", "абвгдежзиклмнопрстуфхцчшщыэюя"),
    ("russianUpper", "АБВГДЕЖЗИКЛМНОПРСТУФХЦЧШЩЫЭЮЯ"),
    ("hebrew2", "אבגדהוזחטיכלמנסעפצקרשת"),
    ("arabicAlpha", "أبتثجحخدذرزسشصضطظعغفقكلمنهوي"),
    ("arabicAbjad", "أبجدهوزحطيكلمنسعفصقرشتثخذضظغ"),
    ("thaiLetters", "กขคงจฉชซฌญฎฏฐฑฒณดตถทธนบปผฝพฟภมยรลวศษสหฬอฮ"),
    ("hindiVowels", "अआइईउऊऋएऐओऔ"),
    ("hindiConsonants", "कखगघङचछजझञटठडढणतथदधनपफबभमयरलवशषसह"),
    ("ideographTraditional", "甲乙丙丁戊己庚辛壬癸"),
    ("ideographZodiac", "子丑寅卯辰巳午未申酉戌亥"),
    (
        "aiueo",
        "アイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワヲン",
    ),
    (
        "iroha",
        "イロハニホヘトチリヌルヲワカヨタレソツネナラムウヰノオクヤマケフコエテアサキユメミシヱヒモセスン",
    ),
    (
        "hiragana",
        "あいうえおかきくけこさしすせそたちつてとなにぬねのはひふへほまみむめもやゆよらりるれろわをん",
    ),
    (
        "hiragana-iroha",
        "いろはにほへとちりぬるをわかよたれそつねならむうゐのおくやまけふこえてあさきゆめみしゑひもせす",
    ),
    ("ganada", "가나다라마바사아자차카타파하"),
    ("chosung", "ㄱㄴㄷㄹㅁㅂㅅㅇㅈㅊㅋㅌㅍㅎ"),
    ("decimalEnclosedParen", "⑴⑵⑶⑷⑸⑹⑺⑻⑼⑽⑾⑿⒀⒁⒂⒃⒄⒅⒆⒇"),
];

/// Letters for 1 to 9, 10 to 90, 100 to 900 and 1000 to 9000.
const LETTERS_OF_DIGITS: [(&str, &str); 3] = [
    ("armenian", "ԱԲԳԴԵԶԷԸԹԺԻԼԽԾԿՀՁՂՃՄՅՆՇՈՉՊՋՌՍՎՏՐՑՒՓՔ"),
    ("lower-armenian", "աբգդեզէըթժիլխծկհձղճմյնշոչպջռսվտրցւփք"),
    ("georgian", "აბგდევზჱთიკლმნჲოპჟრსტჳფქღყშჩცძწჭხჴჯჰ"),
];

/// Chinese numerals in the signs of other countries, or in signs that cannot be altered into each other.
const CHINESE_SIGNS: [(&str, &str); 5] = [
    ("chineseLegalSimplified", "壹贰叁肆伍陆柒捌玖拾佰仟零"),
    ("ideographLegalTraditional", "壹貳參肆伍陸柒捌玖拾佰仟零"),
    ("japaneseLegal", "壱弐参四伍六七八九拾百阡"),
    ("koreanCounting", "일이삼사오육칠팔구십백천"),
    ("japaneseCounting", "一二三四五六七八九十百千"),
];

/// Signs of notes, each repeated in the next round.
const CHICAGO: &str = "*†‡§";

/// Returns a number in the system of this name; in digits if there is none.
pub(crate) fn write_number(count: usize, system: &str) -> String {
    match system {
        "none" => String::new(),
        "lowerLetter" => letters(count),
        "upperLetter" => letters(count).to_ascii_uppercase(),
        "lower-latin" => latin(count),
        "upper-latin" => latin(count).to_ascii_uppercase(),
        "lowerRoman" => roman(count),
        "upperRoman" => roman(count).to_ascii_uppercase(),
        "decimalZero" => format!("{count:02}"),
        own if own.starts_with("00") => {
            let width = own.bytes().take_while(u8::is_ascii_digit).count().min(MAX_WIDTH);
            format!("{count:0width$}")
        }
        "ordinal" => ordinal(count),
        "ordinalText" => ordinal_words(count),
        "cardinalText" => cardinal_words(count),
        "numberInDash" => format!("- {count} -"),
        "decimalEnclosedCircle" | "decimalEnclosedCircleChinese" => circled(count),
        "decimalEnclosedFullstop" if (1..=20).contains(&count) => sign_at(0x2487, count),
        "chineseCounting"
        | "chineseCountingThousand"
        | "taiwaneseCounting"
        | "taiwaneseCountingThousand" => chinese(count),
        "koreanLegal" => korean(count),
        "hebrew1" => hebrew(count),
        "hex" => format!("{count:X}"),
        "chicago" => chicago(count),
        "decimalFullWidth" | "decimalFullWidth2" => in_digits('０', count),
        system => write_in_table(count, system.trim_end_matches("FullWidth"))
            .unwrap_or_else(|| count.to_string()),
    }
}

/// Returns a number in a system of the tables above.
fn write_in_table(count: usize, system: &str) -> Option<String> {
    let signs = |table: &[(&str, &'static str)]| {
        table.iter().find(|(name, _)| *name == system).map(|(_, signs)| *signs)
    };
    if let Some((_, zero)) = ZEROS.iter().find(|(name, _)| *name == system) {
        return Some(in_digits(*zero, count));
    }
    if let Some(digits) = signs(&DIGITS) {
        let digit = |c: char| digits.chars().nth(c.to_digit(10)? as usize);
        return Some(count.to_string().chars().filter_map(digit).collect());
    }
    if let Some(alphabet) = signs(&ALPHABETS) {
        return alphabet.chars().nth(count.checked_sub(1)?).map(String::from);
    }
    if let Some(letters) = signs(&LETTERS_OF_DIGITS) {
        return letters_of_digits(letters, count);
    }
    let signs = signs(&CHINESE_SIGNS)?;
    Some(in_chinese_signs(system, signs, count))
}

/// Returns the system whose first numbers are these samples, such as `イ, ロ, ハ, ...`.
pub(crate) fn system_of_samples(samples: &str) -> Option<&'static str> {
    let mut samples = samples.split(',').map(str::trim);
    let (first, second) = (samples.next()?, samples.next());
    let plain = ["chineseCounting", "decimalEnclosedCircle", "koreanLegal", "decimalFullWidth"];
    let of = |table: &'static [(&'static str, &'static str)]| table.iter().map(|(name, _)| *name);
    let mut names = plain
        .into_iter()
        .chain(of(&ALPHABETS))
        .chain(of(&LETTERS_OF_DIGITS))
        .chain(of(&CHINESE_SIGNS))
        .chain(of(&DIGITS))
        .chain(ZEROS.iter().map(|(name, _)| *name));
    names.find(|name| {
        write_number(1, name) == first
            && second.is_none_or(|second| write_number(2, name) == second)
    })
}

/// Writes a number in the digits of another script, given its zero.
fn in_digits(zero: char, count: usize) -> String {
    let digit = |c: char| char::from_u32(u32::from(zero) + u32::from(c) - u32::from('0'));
    count.to_string().chars().filter_map(digit).collect()
}

/// Returns the character `count` places after `before`.
fn sign_at(before: u32, count: usize) -> String {
    let code = u32::try_from(count).ok().and_then(|count| char::from_u32(before + count));
    code.map_or_else(|| count.to_string(), String::from)
}

/// Writes each digit as the letter for it in its place.
fn letters_of_digits(letters: &str, count: usize) -> Option<String> {
    if !(1..10_000).contains(&count) {
        return None;
    }
    let letter = |place: u32| {
        let digit = count / 10_usize.pow(place) % 10;
        letters.chars().nth((9 * place as usize + digit).checked_sub(1)?).filter(|_| digit > 0)
    };
    Some((0..4).rev().filter_map(letter).collect())
}

/// Writes a Chinese number in other signs. Systems without a zero write no 1 before 10, 100 and 1000.
fn in_chinese_signs(system: &str, signs: &str, count: usize) -> String {
    let mut number = chinese(count);
    if matches!(system, "japaneseCounting" | "koreanCounting") {
        number = number.replace('零', "");
        for unit in ["十", "百", "千"] {
            number = number.replace(&format!("一{unit}"), unit);
        }
    }
    // Signs that cannot be altered leave out no 1.
    if signs.starts_with(['壹', '壱']) && number.starts_with('十') {
        number.insert(0, '一');
    }
    let place = |c: char| "一二三四五六七八九十百千零".chars().position(|known| known == c);
    let sign = |c: char| place(c).and_then(|place| signs.chars().nth(place)).unwrap_or(c);
    number.chars().map(sign).collect()
}

/// Writes a number up to 99 in the words of Korea.
fn korean(count: usize) -> String {
    const TENS: [&str; 10] =
        ["", "열", "스물", "서른", "마흔", "쉰", "예순", "일흔", "여든", "아흔"];
    const ONES: [&str; 10] = ["", "하나", "둘", "셋", "넷", "다섯", "여섯", "일곱", "여덟", "아홉"];
    match count {
        1..100 => format!("{}{}", TENS[count / 10], ONES[count % 10]),
        _ => count.to_string(),
    }
}

fn chicago(count: usize) -> String {
    let place = count.saturating_sub(1);
    let sign = CHICAGO.chars().nth(place % 4).unwrap_or('*');
    sign.to_string().repeat((place / 4 + 1).min(MAX_REPEATED))
}

/// Writes a number in Hebrew letters. 15 and 16 are 9 + 6 and 9 + 7, to avoid parts of the name of God.
fn hebrew(count: usize) -> String {
    const HUNDREDS: [&str; 5] = ["", "ק", "ר", "ש", "ת"];
    const TENS: [&str; 10] = ["", "י", "כ", "ל", "מ", "נ", "ס", "ע", "פ", "צ"];
    const ONES: [&str; 10] = ["", "א", "ב", "ג", "ד", "ה", "ו", "ז", "ח", "ט"];
    match count {
        0 | 500.. => count.to_string(),
        _ => {
            let end = match count % 100 {
                15 => "טו".to_owned(),
                16 => "טז".to_owned(),
                rest => format!("{}{}", TENS[rest / 10], ONES[rest % 10]),
            };
            format!("{}{end}", HUNDREDS[count / 100])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_their_systems() {
        for (count, system, expected) in [
            (10, "ideographDigital", "一〇"),
            (105, "taiwaneseDigital", "一○五"),
            (12, "koreanDigital", "일이"),
            (12, "koreanCounting", "십이"),
            (21, "koreanLegal", "스물하나"),
            (210, "japaneseCounting", "二百十"),
            (105, "chineseCounting", "一百零五"),
            (12, "chineseLegalSimplified", "壹拾贰"),
            (6, "chicago", "††"),
            (16, "hebrew1", "טז"),
            (1_234, "armenian", "ՌՄԼԴ"),
            (12, "georgian", "იბ"),
            (12, "arabic-indic", "١٢"),
            (3, "aiueoFullWidth", "ウ"),
            (12, "decimalFullWidth", "１２"),
            (7, "0001", "0007"),
            (40, "lower-greek", "40"),
            (7, "unknown", "7"),
        ] {
            assert_eq!(write_number(count, system), expected, "{count} {system}");
        }
    }

    #[test]
    fn systems_are_known_by_their_first_numbers() {
        for (samples, system) in [
            ("イ, ロ, ハ, ...", Some("iroha")),
            ("ア, イ, ウ, ...", Some("aiueo")),
            ("一, 二, 三, ...", Some("chineseCounting")),
            ("๑", Some("thaiNumbers")),
            ("١, ٢, ٣, ...", Some("arabic-indic")),
            ("1", None),
        ] {
            assert_eq!(system_of_samples(samples), system, "{samples}");
        }
    }
}
