//! Headers and footers of a sheet.

use crate::{spaces::one_line, xml::Element};

/// Returns the names of the headers and footers that the pages have.
pub(super) fn shown_edge_names(edges: &Element) -> Vec<&'static str> {
    let mut shown = vec!["oddHeader", "oddFooter"];
    if edges.is_on("differentFirst") {
        shown.extend(["firstHeader", "firstFooter"]);
    }
    if edges.is_on("differentOddEven") {
        shown.extend(["evenHeader", "evenFooter"]);
    }
    shown
}

/// Returns the text of a header or footer, without the codes for fonts, page numbers and dates.
pub(super) fn strip_edge_codes(edge: &str) -> String {
    let mut words = String::new();
    let mut rest = edge;
    while let Some((before, code)) = rest.split_once('&') {
        words.push_str(before);
        let Some(kind) = code.chars().next() else { break };
        let behind = code.get(kind.len_utf8()..).unwrap_or_default();
        rest = match kind {
            '&' => {
                words.push('&');
                behind
            }
            '"' => behind.split_once('"').map_or("", |(_, rest)| rest),
            'K' => behind.get(6..).unwrap_or_default(),
            '0'..='9' => code.trim_start_matches(|c: char| c.is_ascii_digit()),
            // Left, middle, right.
            'L' | 'C' | 'R' => {
                words.push(' ');
                behind
            }
            _ => behind,
        };
    }
    words.push_str(rest);
    one_line(&words)
}
