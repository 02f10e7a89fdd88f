//! Text in which a line that ends with a space continues in the next one (RFC 3676,
//! `format=flowed`).

use mail_parser::{MessagePart, MimeHeaders as _};

/// Joins the lines of each paragraph if the part's header states `format=flowed`.
pub(super) fn join_flowed_lines(part: &MessagePart<'_>, text: String) -> String {
    let attribute = |name| part.content_type().and_then(|kind| kind.attribute(name));
    let has_parameter = |name, value| {
        attribute(name).is_some_and(|stated: &str| stated.trim().eq_ignore_ascii_case(value))
    };
    if has_parameter("format", "flowed") {
        join_lines(&text, has_parameter("delsp", "yes"))
    } else {
        text
    }
}

/// Joins lines. `deletes` is `DelSp=yes`: the space at a line's end is not part of the text.
fn join_lines(text: &str, deletes: bool) -> String {
    let mut joined = String::with_capacity(text.len());
    let mut open = None;
    for line in text.lines() {
        let words = line.trim_start_matches('>');
        let depth = line.len() - words.len();
        let words = words.strip_prefix(' ').unwrap_or(words);
        let goes_on = words.ends_with(' ') && words != "-- ";
        if open != Some(depth) {
            if !joined.is_empty() {
                joined.push('\n');
            }
            joined.push_str(&">".repeat(depth));
            joined.push_str(if depth > 0 { " " } else { "" });
        }
        let words = if goes_on && deletes { &words[..words.len() - 1] } else { words };
        joined.push_str(words);
        open = goes_on.then_some(depth);
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::join_lines;

    #[test]
    fn lines_that_go_on_are_joined() {
        for (text, deletes, expected) in [
            ("High \nwater.\nLow.", false, "High water.\nLow."),
            ("con \ntinued", true, "continued"),
            (" From here\n\n  two", false, "From here\n\n two"),
            ("> said \n> so\n>> before \nan answer", false, "> said so\n>> before \nan answer"),
            ("-- \nAda", false, "-- \nAda"),
        ] {
            assert_eq!(join_lines(text, deletes), expected, "{text:?}");
        }
    }
}
