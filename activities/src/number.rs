//! Counts as floats, and for people.

/// A count as a float.
// Exact: counts and tokens lie far below 2^53.
pub(crate) fn float(number: u64) -> f64 {
    number as f64
}

/// The nearest count.
// A cast of a float saturates; a negative number gives 0.
pub(crate) fn whole(number: f64) -> u64 {
    number.round() as u64
}

/// `part / whole`; 0 if `whole` is 0.
pub fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { float(part) / float(whole) }
}

/// `1,234,567`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
