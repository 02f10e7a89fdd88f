//! Line numbers at the edge of a page, as in contracts and pleadings. They are not part of the text.

use super::rows::Row;

/// Fewest numbered lines.
const LINES: usize = 8;
/// Largest deviation of a step between numbers, as a fraction of the mean step.
const UNEVEN: f64 = 0.15;

/// Removes line numbers from rows and returns them; `None` if there are none. Rows of a table may be
/// numbered as well, so some number must have no text beside it, or lines must continue a sentence.
pub(super) fn take_line_numbers(rows: &mut Vec<Row>) -> Option<String> {
    let mut numbers: Vec<(usize, u32)> = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let first = row.words.first().filter(|word| word.table.is_none());
        let number = first.and_then(|word| word.text.parse::<u32>().ok()).filter(|it| *it < 10_000);
        numbers.extend(number.map(|number| (at, number)));
    }
    let step = match numbers.get(..2)? {
        [(_, one), (_, next)] => {
            next.checked_sub(*one).filter(|step| matches!(step, 1 | 5 | 10))?
        }
        _ => return None,
    };
    let words = |at: usize| rows.get(at).map(|row| row.words.as_slice()).unwrap_or_default();
    let is_counted = numbers.windows(2).all(|pair| pair[0].1 + step == pair[1].1);
    // Measured at the numbers: the text beside them may stand a little higher, or closer.
    let y = |at: usize| words(at).first().map_or(0.0, |number| number.y);
    let steps: Vec<f64> = numbers.windows(2).map(|pair| y(pair[1].0) - y(pair[0].0)).collect();
    let usual = steps.iter().sum::<f64>() / steps.len().max(1) as f64;
    let is_even = steps.iter().all(|step| (step - usual).abs() < UNEVEN * usual);
    // The numbers share a left or right edge, and all else stands to their right.
    let edge = |at: &usize| words(*at).first().map_or((0.0, 0.0), |word| word.x);
    let first = edge(&numbers.first()?.0);
    let is_column = numbers.iter().all(|(at, _)| {
        let x = edge(at);
        (x.0 - first.0).abs() < 1.5 || (x.1 - first.1).abs() < 1.5
    });
    let right = numbers.iter().map(|(at, _)| edge(at).1).fold(0.0, f64::max);
    let is_outside = rows
        .iter()
        .enumerate()
        .flat_map(|(at, row)| {
            row.words.iter().skip(usize::from(numbers.iter().any(|it| it.0 == at)))
        })
        .all(|word| word.x.0 > right);
    let is_blank = |(at, _): &&(usize, u32)| words(*at).len() == 1;
    let goes_on = |(at, _): &&(usize, u32)| {
        let word = words(*at).get(1);
        word.is_some_and(|word| word.text.starts_with(char::is_lowercase))
    };
    let is_not_a_table = numbers.iter().any(|it| is_blank(&it))
        || numbers.iter().filter(goes_on).count() * 3 > numbers.len();
    if numbers.len() < LINES
        || !(is_counted && is_even && is_column && is_outside && is_not_a_table)
    {
        return None;
    }
    let text: Vec<String> = numbers.iter().map(|(_, number)| number.to_string()).collect();
    for (at, _) in &numbers {
        rows[*at].words.remove(0);
    }
    rows.retain(|row| !row.words.is_empty());
    Some(text.join(" "))
}
