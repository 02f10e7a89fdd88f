//! Splitting of long text into chunks.

use std::ops::Range;

use text_splitter::{ChunkConfig, ChunkSizer, MarkdownSplitter, TextSplitter};

use crate::tokens;

/// Most bytes that are given to the splitter at once. In a text without borders its time grows
/// faster than the length.
const SECTION: usize = 128 << 10;

/// Options for splitting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Split {
    /// Most estimated tokens of a chunk; at least 1.
    pub max_tokens: usize,
    /// Estimated tokens that a chunk shares with the one before it.
    pub overlap_tokens: usize,
    /// Whether to prefer headings and other borders of Markdown to sentences.
    pub markdown: bool,
}

/// One piece of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Position in the text, in bytes.
    pub range: Range<usize>,
}

struct Estimate;

impl ChunkSizer for Estimate {
    fn size(&self, chunk: &str) -> usize {
        usize::try_from(tokens::estimate(chunk)).unwrap_or(usize::MAX)
    }
}

/// Splits at the best borders that keep each chunk within its tokens: sections, paragraphs,
/// sentences, words, then letters. Only white space between chunks is left out. The result depends
/// on nothing but the arguments.
pub fn split(text: &str, options: Split) -> Vec<Chunk> {
    let most = options.max_tokens.max(1);
    let overlap = options.overlap_tokens.min(most / 2);
    let mut chunks = Vec::new();
    for section in sections(text) {
        let config = ChunkConfig::new(most).with_sizer(Estimate).with_trim(false);
        // An overlap below the capacity is always accepted.
        let Ok(config) = config.with_overlap(overlap) else { continue };
        let range =
            |(at, chunk): (usize, &str)| section.start + at..section.start + at + chunk.len();
        let piece = &text[section.clone()];
        if options.markdown {
            chunks.extend(MarkdownSplitter::new(config).chunk_indices(piece).map(range));
        } else {
            chunks.extend(TextSplitter::new(config).chunk_indices(piece).map(range));
        }
    }
    chunks
        .into_iter()
        .filter(|range: &Range<usize>| !text[range.clone()].trim().is_empty())
        .map(|range| Chunk { range })
        .collect()
}

/// Divides a text into pieces of at most [`SECTION`] bytes, at a paragraph, a line or a word if
/// possible.
fn sections(text: &str) -> Vec<Range<usize>> {
    let (mut sections, mut start) = (Vec::new(), 0);
    while start < text.len() {
        let most = text.floor_char_boundary((start + SECTION).min(text.len()));
        let piece = &text[start..most];
        let border = |mark: &str| {
            piece.rfind(mark).filter(|at| *at > SECTION / 2).map(|at| start + at + mark.len())
        };
        let end = if most == text.len() {
            most
        } else {
            border("\n\n").or_else(|| border("\n")).or_else(|| border(" ")).unwrap_or(most)
        };
        sections.push(start..end);
        start = end;
    }
    sections
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use proptest::prelude::*;

    use super::*;

    const OPTIONS: Split = Split { max_tokens: 100, overlap_tokens: 10, markdown: false };

    fn check(text: &str, options: Split) -> Vec<Chunk> {
        let chunks = split(text, options);
        let mut end = 0;
        for chunk in &chunks {
            let piece = &text[chunk.range.clone()];
            assert!(
                tokens::estimate(piece) as usize <= options.max_tokens.max(1)
                    || piece.chars().count() == 1,
                "{}",
                piece.len()
            );
            if chunk.range.start > end {
                assert!(
                    text[end..chunk.range.start].trim().is_empty(),
                    "left out: {:?}",
                    &text[end..chunk.range.start]
                );
            }
            end = end.max(chunk.range.end);
        }
        assert!(text[end..].trim().is_empty());
        chunks
    }

    #[test]
    fn chunks_end_at_sentences_and_overlap() {
        let text = "The tide turns twice a day. Nobody waits for it.\n\n".repeat(100);
        let chunks = check(&text, Split { overlap_tokens: 30, ..OPTIONS });
        assert!(
            chunks.len() > 10
                && chunks.iter().all(|chunk| text[chunk.range.clone()].trim_end().ends_with('.'))
        );
        assert!(
            chunks.windows(2).filter(|pair| pair[1].range.start < pair[0].range.end).count()
                > chunks.len() / 2,
            "overlap"
        );
        assert_eq!(split("Short.", OPTIONS), [Chunk { range: 0..6 }]);
        assert!(split("", OPTIONS).is_empty() && split(" \n ", OPTIONS).is_empty());
    }

    #[test]
    fn two_megabytes_without_borders_take_seconds() {
        let options = Split { max_tokens: 20_000, overlap_tokens: 200, markdown: true };
        for text in [
            "a".repeat(2_000_000),
            "word ".repeat(400_000),
            "\n".repeat(2_000_000),
            "# h\n".repeat(500_000),
            "12 ".repeat(700_000),
        ] {
            for options in [options, Split { markdown: false, ..options }] {
                let start = Instant::now();
                check(&text, options);
                assert!(
                    start.elapsed() < Duration::from_secs(60),
                    "{:?} for {:?}",
                    start.elapsed(),
                    &text[..5]
                );
            }
        }
    }

    proptest! {
        #[test]
        fn nothing_is_left_out(text in "([a-z]{1,12}[ .\n]{1,2}|[ÄÖü漢字]{1,4}|# ?){0,300}", most in 1_usize..60, overlap in 0_usize..80, markdown: bool) {
            check(&text, Split { max_tokens: most, overlap_tokens: overlap, markdown });
        }
    }
}
