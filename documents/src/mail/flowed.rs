//! Text in which lines that end with a space go on in the next one (RFC 3676, `format=flowed`).

use mail_parser::{MessagePart, MimeHeaders as _};

/// The text of a part with its paragraphs in one line each, where its header says that they are
/// broken so.
pub(super) fn unbroken(part: &MessagePart<'_>, text: String) -> String {
    let attribute = |name| part.content_type().and_then(|kind| kind.attribute(name));
    let says = |name, value| {
        attribute(name).is_some_and(|said: &str| said.trim().eq_ignore_ascii_case(value))
    };
    if says("format", "flowed") { joined(&text, says("delsp", "yes")) } else { text }
}

/// `deletes` where the space at a line's end belongs to the break, and not to the text.
fn joined(text: &str, deletes: bool) -> String {
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
    use super::joined;

    #[test]
    fn lines_that_go_on_are_joined() {
        for (text, deletes, expected) in [
            ("High \nwater.\nLow.", false, "High water.\nLow."),
            ("con \ntinued", true, "continued"),
            (" From here\n\n  two", false, "From here\n\n two"),
            ("> said \n> so\n>> before \nan answer", false, "> said so\n>> before \nan answer"),
            ("-- \nAda", false, "-- \nAda"),
        ] {
            assert_eq!(joined(text, deletes), expected, "{text:?}");
        }
    }
}
