//! White space between words.

/// Joins the words of a text with one space each, on one line.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Joins the lines of a text with one space each. Spaces within a line stay.
pub(crate) fn joined_lines(text: &str) -> String {
    let lines = text.split(|c: char| c != ' ' && c.is_ascii_whitespace());
    let lines: Vec<&str> = lines.map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join(" ").replace(|c: char| c.is_whitespace(), " ")
}
