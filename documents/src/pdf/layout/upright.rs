//! Vertical text: letters set one by one in columns, read downwards and from the right. Only their
//! positions show it.

use super::super::glyph::Glyph;

/// Most letters that are compared with all others.
const SAMPLE: usize = 200;
/// Most letters of a page that is examined.
const MAX_LETTERS: usize = 20_000;

/// Returns the letters in the frame of vertical text; `None` if the text is not vertical.
pub(super) fn as_vertical_text(glyphs: &[&Glyph]) -> Option<Vec<Glyph>> {
    let letters: Vec<&Glyph> =
        glyphs.iter().filter(|glyph| !glyph.text.trim().is_empty()).copied().collect();
    let ideographs = letters.iter().filter(|glyph| glyph.text.chars().all(is_ideograph)).count();
    if !(8..=MAX_LETTERS).contains(&letters.len()) || ideographs * 10 < letters.len() * 8 {
        return None;
    }
    let (mut steps_down, mut steps_right) = (Vec::new(), Vec::new());
    let sample: Vec<&&Glyph> = letters.iter().step_by(letters.len().div_ceil(SAMPLE)).collect();
    for letter in &sample {
        let near = |one: f64, other: f64| (one - other).abs() < 0.3 * letter.size;
        let steps = |other: &&&Glyph| {
            let (right, down) = (other.x.0 - letter.x.0, other.y - letter.y);
            let step = if near(other.x.0, letter.x.0) { Some((true, down)) } else { None };
            step.or_else(|| near(other.y, letter.y).then_some((false, right)))
        };
        let nearest_step = |wanted: bool| {
            letters
                .iter()
                .filter_map(|other| steps(&other))
                .filter(|(is_below, step)| *is_below == wanted && *step > 0.3 * letter.size)
                .map(|(_, step)| step / letter.size)
                .min_by(f64::total_cmp)
        };
        steps_down.extend(nearest_step(true));
        steps_right.extend(nearest_step(false));
    }
    let middle = |steps: &mut Vec<f64>| {
        steps.sort_by(f64::total_cmp);
        steps.get(steps.len() / 2).copied()
    };
    let is_stacked = steps_down.len() * 2 >= sample.len();
    let (down, right) = (middle(&mut steps_down)?, middle(&mut steps_right));
    (is_stacked && down < 2.0 && right.is_none_or(|right| right > 1.2 * down)).then(|| {
        let rotated = |glyph: &&Glyph| Glyph {
            // The letter reaches to the next one, because no space is meant between them.
            x: (glyph.y - glyph.size, glyph.y + (down - 1.0) * glyph.size),
            y: -f64::midpoint(glyph.x.0, glyph.x.1),
            turn: 900,
            ..(*glyph).clone()
        };
        glyphs.iter().map(rotated).collect()
    })
}

/// Whether a character is of a script that is also written vertically, or punctuation of one.
fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3000}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}' | '\u{fe10}'..='\u{fe4f}' | '\u{ff00}'..='\u{ffef}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns letters of 10 points in rows: steps of `across` points in a row, `down` points between
    /// rows.
    fn set(rows: &[&str], across: f64, down: f64) -> Vec<Glyph> {
        let places = rows.iter().zip(0_u32..).flat_map(|(row, line)| {
            row.chars().zip(0_u32..).map(move |(letter, column)| (letter, line, column))
        });
        let glyph = |(letter, line, column): (char, u32, u32)| {
            let x = f64::from(column) * across;
            let text = String::from(letter).into();
            Glyph { text, x: (x, x + 10.0), y: f64::from(line) * down, size: 10.0, turn: 0 }
        };
        places.map(glyph).collect()
    }

    #[test]
    fn columns_of_letters_are_told_from_lines() {
        let read = |rows: &[&str], across: f64, down: f64| {
            let glyphs = set(rows, across, down);
            crate::pdf::layout::tests::read(&glyphs)
        };
        let rows = ["二潮", "度は", "満一", "ち日", "るに"];
        assert_eq!(read(&rows, 16.0, 12.0), "潮は一日に\n二度満ちる");
        assert_eq!(read(&rows, 11.0, 18.0).lines().next(), Some("二潮"));
        assert!(
            as_vertical_text(
                &set(&["ab", "cd", "ef", "gh"], 20.0, 12.0).iter().collect::<Vec<_>>()
            )
            .is_none()
        );
    }
}
