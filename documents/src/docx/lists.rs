//! Lists: the mark before each item.

use std::collections::HashMap;

use crate::{
    numerals::{cardinal_words, chinese, circled, letters, ordinal, ordinal_words, roman},
    xml::Element,
};

/// Most digits of a zero-padded number.
const MAX_WIDTH: usize = 20;

/// Numbering of one level of a list.
#[derive(Debug, Clone, Default)]
struct Level {
    format: String,
    /// Pattern of the mark, such as `%1.%2`.
    text: String,
    start: usize,
    /// Whether numbers of other levels are written in digits (`isLgl`).
    in_digits: bool,
    /// The deepest level, from 1, whose items restart this one; 0 for none. By default all higher levels
    /// do.
    restarts: Option<usize>,
}

#[derive(Debug, Default)]
pub(super) struct Lists {
    /// Id of each list's abstract numbering (`abstractNum`), which lists may share.
    abstract_ids: HashMap<String, String>,
    levels: HashMap<(String, usize), Level>,
    /// Levels that a list numbers differently from its abstract numbering.
    level_overrides: HashMap<(String, usize), Level>,
    /// The level that each abstract numbering assigns to a style.
    level_by_style: HashMap<(String, String), usize>,
    /// Numbers at which a list restarts the count of its abstract numbering; each is used up by the list's
    /// first item.
    start_overrides: HashMap<(String, usize), usize>,
    /// Last number of each level, by abstract numbering.
    counts: HashMap<String, [Option<usize>; 9]>,
}

impl Level {
    fn read(level: &Element) -> Self {
        let value = |name: &str| level.child(name).and_then(|e| e.attribute("val"));
        // A custom format (`001, 002, …`) stands beside one for older programs.
        let formats = level.all("numFmt");
        let own = formats.iter().find_map(|format| format.attribute("format"));
        let format = own.or_else(|| formats.first()?.attribute("val"));
        Self {
            format: format.unwrap_or_default(),
            text: value("lvlText").unwrap_or_default(),
            start: value("start").and_then(|n| n.parse().ok()).unwrap_or(1),
            restarts: value("lvlRestart").and_then(|n| n.parse().ok()),
            in_digits: level.child("isLgl").is_some_and(|it| !it.is_off("val")),
        }
    }
}

impl Lists {
    pub(super) fn read(part: Option<&Element>) -> Self {
        let mut lists = Self::default();
        let Some(part) = part else { return lists };
        for abstract_list in part.all("abstractNum") {
            let id = abstract_list.attribute("abstractNumId").unwrap_or_default();
            for (place, level) in abstract_list.elements().filter(|e| &*e.name == "lvl").enumerate()
            {
                let place = level.attribute("ilvl").and_then(|n| n.parse().ok()).unwrap_or(place);
                let style = level.child("pStyle").and_then(|style| style.attribute("val"));
                lists.level_by_style.extend(style.map(|style| ((id.clone(), style), place)));
                lists.levels.insert((id.clone(), place), Level::read(level));
            }
        }
        // An abstract numbering may only name the style of another one.
        let named = |list: &Element, name: &str| list.child(name)?.attribute("val");
        let abstract_lists = part.all("abstractNum");
        let links: HashMap<String, String> = abstract_lists
            .iter()
            .filter_map(|list| {
                let style = named(list, "numStyleLink")?;
                let meant = abstract_lists
                    .iter()
                    .find(|it| named(it, "styleLink").as_ref() == Some(&style))?;
                Some((list.attribute("abstractNumId")?, meant.attribute("abstractNumId")?))
            })
            .collect();
        for list in part.all("num") {
            let abstract_id = list.child("abstractNumId").and_then(|it| it.attribute("val"));
            let abstract_id = abstract_id.map(|id| links.get(&id).cloned().unwrap_or(id));
            if let (Some(id), Some(abstract_id)) = (list.attribute("numId"), abstract_id) {
                for (place, level) in list.all("lvlOverride").into_iter().enumerate() {
                    let number = |text: Option<String>| text.and_then(|text| text.parse().ok());
                    let begin = level.child("startOverride").and_then(|e| e.attribute("val"));
                    let place = number(level.attribute("ilvl")).unwrap_or(place);
                    if let Some(begin) = number(begin) {
                        lists.start_overrides.insert((id.clone(), place), begin);
                    }
                    if let Some(own) = level.child("lvl") {
                        lists.level_overrides.insert((id.clone(), place), Level::read(own));
                    }
                }
                lists.abstract_ids.insert(id, abstract_id);
            }
        }
        lists
    }

    /// Returns the level that a list assigns to a style.
    pub(super) fn level_of(&self, list: &str, style: &str) -> Option<usize> {
        let abstract_id = self.abstract_ids.get(list)?.clone();
        self.level_by_style.get(&(abstract_id, style.to_owned())).copied()
    }

    /// Returns the mark of the next item, with a space after it: `- `, `2. `, `1.3 `.
    pub(super) fn next_mark(&mut self, list: &str, level: usize) -> String {
        let abstract_id = self.abstract_ids.get(list).cloned().unwrap_or_default();
        let levels: [Option<&Level>; 9] = std::array::from_fn(|place| {
            let own = self.level_overrides.get(&(list.to_owned(), place));
            own.or_else(|| self.levels.get(&(abstract_id.clone(), place)))
        });
        let Some(own_level) = levels.get(level).copied().flatten() else {
            return "- ".to_owned();
        };
        let counts = self.counts.entry(abstract_id.clone()).or_default();
        let next = || counts[level].map_or(own_level.start, |count| count.saturating_add(1));
        let count = self.start_overrides.remove(&(list.to_owned(), level)).unwrap_or_else(next);
        counts[level] = Some(count);
        for (place, deeper) in counts.iter_mut().enumerate().skip(level + 1) {
            let restarts = levels[place].and_then(|it| it.restarts);
            if restarts.is_none_or(|behind| level < behind) {
                *deeper = None;
            }
        }
        if own_level.format == "bullet"
            || (own_level.format.is_empty() && own_level.text.is_empty())
        {
            return "- ".to_owned();
        }
        let mut text = own_level.text.clone();
        for (place, count) in counts.iter().enumerate() {
            let other = levels[place];
            let count = count.unwrap_or_else(|| other.map_or(1, |level| level.start));
            let format = match other {
                Some(level) if !own_level.in_digits || level.format == "decimalZero" => {
                    &*level.format
                }
                _ => "decimal",
            };
            text = text.replace(&format!("%{}", place + 1), &format_number(count, format));
        }
        if text.trim().is_empty() { String::new() } else { format!("{text} ") }
    }
}

fn format_number(count: usize, format: &str) -> String {
    match format {
        "none" => String::new(),
        "lowerLetter" => letters(count),
        "upperLetter" => letters(count).to_ascii_uppercase(),
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
        "chineseCounting"
        | "chineseCountingThousand"
        | "taiwaneseCounting"
        | "taiwaneseCountingThousand"
        | "japaneseCounting"
        | "ideographDigital" => chinese(count),
        "chineseLegalSimplified" => legal("壹贰叁肆伍陆柒捌玖拾佰仟", count),
        "ideographLegalTraditional" => legal("壹貳參肆伍陸柒捌玖拾佰仟", count),
        "japaneseLegal" => legal("壱弐参四伍六七八九拾百阡", count),
        "thaiNumbers" => digits('๐', count),
        "hindiNumbers" => digits('०', count),
        "thaiLetters" => one_of("กขคงจฉชซฌญฎฏฐฑฒณดตถทธนบปผฝพฟภมยรลวศษสหฬอฮ", count),
        "arabicAlpha" => one_of("أبتثجحخدذرزسشصضطظعغفقكلمنهوي", count),
        "arabicAbjad" => one_of("أبجدهوزحطيكلمنسعفصقرشتثخذضظغ", count),
        "hebrew1" => hebrew(count),
        "hebrew2" => one_of("אבגדהוזחטיכלמנסעפצקרשת", count),
        "decimalEnclosedParen" if (1..=20).contains(&count) => sign_at(0x2473, count),
        "decimalEnclosedFullstop" if (1..=20).contains(&count) => sign_at(0x2487, count),
        "hex" => format!("{count:X}"),
        "decimalFullWidth" | "decimalFullWidth2" => {
            let wide = |c: char| char::from_u32(u32::from(c) + 0xfee0).unwrap_or(c);
            count.to_string().chars().map(wide).collect()
        }
        "russianLower" => one_of("абвгдежзиклмнопрстуфхцчшщыэюя", count),
        "russianUpper" => one_of("АБВГДЕЖЗИКЛМНОПРСТУФХЦЧШЩЫЭЮЯ", count),
        "ideographTraditional" => one_of("甲乙丙丁戊己庚辛壬癸", count),
        "ideographZodiac" => one_of("子丑寅卯辰巳午未申酉戌亥", count),
        "aiueo" | "aiueoFullWidth" => one_of(
            "アイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワヲン",
            count,
        ),
        "iroha" | "irohaFullWidth" => one_of(
            "イロハニホヘトチリヌルヲワカヨタレソツネナラムウヰノオクヤマケフコエテアサキユメミシヱヒモセスン",
            count,
        ),
        "ganada" => one_of("가나다라마바사아자차카타파하", count),
        "chosung" => one_of("ㄱㄴㄷㄹㅁㅂㅅㅇㅈㅊㅋㅌㅍㅎ", count),
        _ => count.to_string(),
    }
}

/// Writes a number in the digits of another script, given its zero.
fn digits(zero: char, count: usize) -> String {
    let digit = |c: char| char::from_u32(u32::from(zero) + u32::from(c) - u32::from('0'));
    count.to_string().chars().filter_map(digit).collect()
}

/// Returns the character `count` places after `before`.
fn sign_at(before: u32, count: usize) -> String {
    let code = u32::try_from(count).ok().and_then(|count| char::from_u32(before + count));
    code.map_or_else(|| count.to_string(), String::from)
}

/// Writes a Chinese number in legal digits, which cannot be altered into each other.
fn legal(signs: &str, count: usize) -> String {
    let plain = "一二三四五六七八九十百千";
    let legal = |c: char| {
        let place = plain.chars().position(|known| known == c);
        place.and_then(|place| signs.chars().nth(place)).unwrap_or(c)
    };
    chinese(count).chars().map(legal).collect()
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

/// Returns a letter of an alphabet other than Latin; digits beyond its end.
fn one_of(letters: &str, count: usize) -> String {
    let letter = count.checked_sub(1).and_then(|place| letters.chars().nth(place));
    letter.map_or_else(|| count.to_string(), String::from)
}
