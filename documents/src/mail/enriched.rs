//! Enriched text (RFC 1896) and its predecessor `text/richtext` (RFC 1341).

/// Converts enriched text to plain text: without its commands, and with its line ends. One line end
/// is a space; each further one is a line end.
pub(super) fn to_plain_text(enriched: &str) -> String {
    let (mut plain, mut rest, mut parameters, mut breaks) = (String::new(), enriched, 0_usize, 0);
    let mut unfilled = 0_usize;
    while let Some(next) = rest.chars().next() {
        let command = rest.strip_prefix('<').and_then(|rest| rest.split_once('>'));
        let is_name = |name: &str| {
            name.trim_start_matches('/').chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
        };
        let (kept, length) = match command {
            _ if rest.starts_with("<<") => ("<", 2),
            Some((name, _)) if is_name(name) => {
                match name.to_ascii_lowercase().as_str() {
                    "param" => parameters += 1,
                    "/param" => parameters = parameters.saturating_sub(1),
                    "nofill" => unfilled += 1,
                    "/nofill" => unfilled = unfilled.saturating_sub(1),
                    "nl" => plain.push('\n'),
                    _ => {}
                }
                ("", name.len() + 2)
            }
            _ => (&rest[..next.len_utf8()], next.len_utf8()),
        };
        rest = &rest[length..];
        match kept {
            _ if parameters > 0 => {}
            "\r" => {}
            "\n" if unfilled == 0 => {
                plain.push(if breaks == 0 { ' ' } else { '\n' });
                breaks += 1;
            }
            _ => {
                plain.push_str(kept);
                breaks = if kept.is_empty() { breaks } else { 0 };
            }
        }
    }
    plain.replace(" \n", "\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_no_text() {
        for (enriched, expected) in [
            ("<bold>Ebb</bold> <color><param>red</param>tide</color> <<5", "Ebb tide <5"),
            ("one\r\nline\r\n\r\nnext\n\n\nlast\n", "one line\nnext\n\nlast"),
            ("<nofill>a\nb</nofill>\nc", "a\nb c"),
            ("a < b <bold", "a < b <bold"),
            ("one<nl>two", "one\ntwo"),
        ] {
            assert_eq!(to_plain_text(enriched), expected);
        }
    }
}
