//! Accents that are drawn over letters of their own, as by TeX: `¨` and `o` are `ö`.

use super::glyph::Glyph;

/// How far an accent's middle may lie beside its letter, in ems.
const BESIDE: f64 = 0.1;
/// How far an accent may be drawn above or below the line of its letter, in ems: capitals are higher.
const SHIFT: f64 = 0.4;

/// Accents with their combining forms, and pairs of a letter with and without the accent.
const ACCENTS: [(&[char], char, &str); 12] = [
    (&['`'], '\u{300}', "AÀEÈIÌNǸOÒUÙaàeèiìnǹoòuù"),
    (&['´'], '\u{301}', "AÁCĆEÉIÍLĹNŃOÓRŔSŚUÚYÝZŹaácćeéiílĺnńoórŕsśuúyýzź"),
    (&['ˆ', '^'], '\u{302}', "AÂCĈEÊGĜHĤIÎJĴOÔSŜUÛWŴYŶaâcĉeêgĝhĥiîjĵoôsŝuûwŵyŷ"),
    (&['˜', '~'], '\u{303}', "AÃEẼIĨNÑOÕUŨaãeẽiĩnñoõuũ"),
    (&['¨'], '\u{308}', "AÄEËIÏOÖUÜYŸaäeëiïoöuüyÿ"),
    (&['ˇ'], '\u{30c}', "CČDĎEĚNŇRŘSŠTŤZŽcčdďeěnňrřsštťzž"),
    (&['˘'], '\u{306}', "AĂEĔGĞIĬOŎUŬaăeĕgğiĭoŏuŭ"),
    (&['˚'], '\u{30a}', "AÅUŮaåuů"),
    (&['¯', 'ˉ'], '\u{304}', "AĀEĒIĪOŌUŪaāeēiīoōuū"),
    (&['˙'], '\u{307}', "CĊEĖGĠIİZŻcċeėgġzż"),
    (&['˝'], '\u{30b}', "OŐUŰoőuű"),
    (&['¸'], '\u{327}', "CÇSŞTŢcçsştţ"),
];

/// Joins accents with the letters that they are drawn over. Accent and letter are drawn one after the
/// other.
pub(super) fn join_accents(glyphs: &mut Vec<Glyph>) {
    if !glyphs.iter().any(|glyph| combining_form(glyph).is_some()) {
        return;
    }
    let mut joined: Vec<Glyph> = Vec::with_capacity(glyphs.len());
    let mut rest = glyphs.drain(..).peekable();
    while let Some(glyph) = rest.next() {
        // TeX draws the accent first.
        let after = rest.peek().and_then(|letter| compose(letter, &glyph));
        if let Some((text, letter)) = after.and_then(|text| Some((text, rest.next()?))) {
            joined.push(Glyph { text: text.into(), ..letter });
            continue;
        }
        match joined.last_mut().and_then(|letter| Some((compose(letter, &glyph)?, letter))) {
            Some((text, letter)) => letter.text = text.into(),
            None => joined.push(glyph),
        }
    }
    drop(rest);
    *glyphs = joined;
}

fn only_letter(glyph: &Glyph) -> Option<char> {
    let mut letters = glyph.text.chars();
    letters.next().filter(|_| letters.next().is_none())
}

/// Returns the combining form of an accent with its composed letters; `None` for other letters.
fn combining_form(glyph: &Glyph) -> Option<(char, &'static str)> {
    let sign = only_letter(glyph)?;
    let found = ACCENTS.iter().find(|(signs, ..)| signs.contains(&sign));
    found.map(|(_, form, letters)| (*form, *letters))
}

/// Whether an accent is drawn over a letter.
fn is_over(accent: &Glyph, letter: &Glyph) -> bool {
    let middle = f64::midpoint(accent.x.0, accent.x.1);
    let beside = BESIDE * letter.size;
    accent.turn == letter.turn
        && (letter.x.0 - beside..letter.x.1 + beside).contains(&middle)
        && (accent.y - letter.y).abs() < SHIFT * letter.size
}

/// Returns a letter with the accent that is drawn over it.
fn compose(letter: &Glyph, accent: &Glyph) -> Option<String> {
    let (form, composed) = combining_form(accent).filter(|_| is_over(accent, letter))?;
    let letter = match only_letter(letter)? {
        'ı' => 'i',
        'ȷ' => 'j',
        letter => letter,
    };
    let mut pairs = composed.chars();
    while let (Some(plain), Some(accented)) = (pairs.next(), pairs.next()) {
        if plain == letter {
            return Some(accented.to_string());
        }
    }
    letter.is_alphabetic().then(|| format!("{letter}{form}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accents_belong_to_the_letters_below_them() {
        let glyph = |text: &str, x: f64, y: f64| Glyph {
            text: text.into(),
            x: (x, x + 5.0),
            y,
            size: 10.0,
            turn: 0,
        };
        let joined = |glyphs: &[(&str, f64, f64)]| {
            let mut glyphs = glyphs.iter().map(|(text, x, y)| glyph(text, *x, *y)).collect();
            join_accents(&mut glyphs);
            glyphs.iter().map(|glyph| &*glyph.text).collect::<Vec<_>>().join(" ")
        };
        for (glyphs, text) in [
            (&[("G", 0.0, 0.0), ("¨", 5.0, 0.0), ("o", 5.2, 0.0), ("d", 10.0, 0.0)][..], "G ö d"),
            (&[("E", 0.0, 0.0), ("´", 0.3, -2.0)], "É"),
            (&[("´", 0.0, 0.0), ("ı", 0.0, 0.0)], "í"),
            (&[("ˆ", 0.0, 0.0), ("x", 0.0, 0.0)], "x\u{302}"),
            (&[("´", 0.0, 0.0), ("a", 5.0, 0.0)], "´ a"),
            (&[("~", 0.0, 0.0), ("1", 0.0, 0.0)], "~ 1"),
            (&[("¨", 0.0, 9.0), ("o", 0.0, 0.0)], "¨ o"),
        ] {
            assert_eq!(joined(glyphs), text);
        }
        for (_, _, pairs) in ACCENTS {
            assert_eq!(pairs.chars().count() % 2, 0, "{pairs}");
        }
    }
}
