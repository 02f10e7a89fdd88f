//! Words divided at a line's end. A hyphen that belongs to the word stays: by evidence on the page.

use std::collections::BTreeSet;

/// A hyphen that only divides a word; an ordinary one may do that too.
const DIVIDING: [char; 2] = ['\u{ad}', '\u{2010}'];

/// The evidence of a page.
#[derive(Debug, Default)]
pub(super) struct Hyphens<'t> {
    /// Words with a hyphen within a line.
    compounds: BTreeSet<&'t str>,
    /// Whether words are divided by hyphens of their own kind, so that ordinary ones belong to words.
    has_dividing: bool,
}

impl<'t> Hyphens<'t> {
    pub(super) fn of_lines(lines: impl Iterator<Item = &'t str>) -> Self {
        let mut found = Self::default();
        for line in lines {
            found.has_dividing |= line.trim_end().ends_with(DIVIDING);
            found.compounds.extend(line.split(|c: char| !is_of_word(c)).filter(|word| {
                word.split_once('-')
                    .is_some_and(|(first, last)| !first.is_empty() && !last.is_empty())
            }));
        }
        found
    }

    /// Appends a line if its first word ends the last word of `text`. Returns whether it does.
    pub(super) fn join(&self, text: &mut String, line: &str) -> bool {
        let Some(head) = text.strip_suffix(['-', DIVIDING[0], DIVIDING[1]]) else { return false };
        let line = line.trim_start();
        let lowercase = |c: Option<char>| c.is_some_and(char::is_lowercase);
        if !lowercase(head.chars().next_back()) || !lowercase(line.chars().next()) {
            return false;
        }
        let word = head.rsplit(|c| !is_of_word(c)).next().unwrap_or_default();
        let rest = line.split(|c| !is_of_word(c)).next().unwrap_or_default();
        let rest = rest.trim_end_matches('-');
        let stays = text.ends_with('-')
            && (self.has_dividing
                || word.contains('-')
                || rest.contains('-')
                || self.compounds.contains(&*format!("{word}-{rest}")));
        if !stays {
            text.truncate(head.len());
        }
        true
    }
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '-'
}
