//! Numbers of items as letters and in Roman.

/// a, …, z, aa, bb, …
pub(crate) fn letters(count: usize) -> String {
    let place = count.saturating_sub(1);
    let letter = u8::try_from(place % 26).unwrap_or(0) + b'a';
    char::from(letter).to_string().repeat((place / 26 + 1).min(10))
}

/// i, ii, iii, iv, …
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
