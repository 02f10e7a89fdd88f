//! Pictures: a model's token count for one, and the largest useful size.
//! | models | rule | source |
//! |---|---|---|
//! | Claude | patches of 28 × 28 pixels; up to 4.6 at most 1,568 pixels an edge and as many tokens, later ones 2,016 | platform.claude.com/docs/en/build-with-claude/vision; measured: huggingface.co/datasets/JOHNISKING/image-token-cost (gives 1,369 + text for 1,024 × 1,024, and 2,952 for 16:9 at most) |
//! | GPT-4o, 4.1, 4.5, 5, 5.1, o1, o3 | within 2,048², the shorter edge 768, a base and tiles of 512² | OpenAI, "Tile-based image tokenization" |
//! | GPT-5.4 and later | patches of 32² within 2,048² and 2,500 of them (`detail: high`, which is what we send), times 1.2 | OpenAI, "Patch-based image tokenization" |
//! | GPT-5.2, 5.3, 4.1 mini | patches of 32² within 2,048² and 6,144 of them, times the model's weight | OpenAI, "Patch-based image tokenization" |
//! | GPT-5 mini and nano, GPT-4.1 nano, o4-mini | patches of 32² within 2,048² and 1,536 of them, times the model's weight: they are being shut down, and the page states only their weights; that bound is of its text of 2025 | OpenAI, "Patch-based image tokenization" |
//! | Gemini up to 2.5 | 258, and where an edge is longer than 384 for each tile, whose edge is the shorter one divided by 1.5, 256 to 768 | ai.google.dev/gemini-api/docs/image-understanding; the bounds of a tile, and 3,072² for the whole: Vertex AI, send-multimodal-prompts, image requirements |
//! | Gemini 3 and later | 1,120 for any size | ai.google.dev/gemini-api/docs/media-resolution; measured 1,065 to 1,101 |
//! | others | pixels / 750, as Anthropic documented for Claude for long | |
//!
//! OpenAI's page is developers.openai.com/api/docs/guides/images-vision, "Calculating costs", as of
//! September 2026. It states that its count may be off by one.
//!
//! Vendors scale down larger pictures, so that more pixels cost time without any gain.

use std::fmt;

use crate::bounds;

/// A picture to send.
#[derive(Clone, PartialEq, Eq)]
pub struct Picture {
    /// `image/png`, `image/jpeg` or `image/webp`, which every vendor takes.
    pub media_type: String,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// The file.
    pub bytes: Vec<u8>,
}

/// Shows the size instead of the picture.
impl fmt::Debug for Picture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { media_type, width, height, bytes } = self;
        write!(f, "{media_type} {width}×{height} ({} bytes)", bytes.len())
    }
}

/// Maximum bytes of one file that every vendor takes: Bedrock's 3.75 MB are the smallest limit
/// (docs.aws.amazon.com, `API_runtime_Message`); Anthropic takes 5 MB, OpenAI and Gemini 20.
pub const MAX_BYTES: u64 = 3_750_000;

/// Longest edge in pixels that OpenAI's models use.
const EDGE: u32 = 2_048;

/// Edge of their patches, in pixels.
const PATCH: u32 = 32;

/// The rule by which a model counts a picture's tokens.
#[derive(Debug, Clone, Copy)]
enum Rule {
    /// A token for each square of 28 pixels, within a longest edge and a number of squares.
    Squares { edge: u32, most: u32 },
    /// Hundredths of a token for each square of 32 pixels, within an edge of 2,048 and a number of
    /// squares.
    Patches { most: u32, hundredths: u64 },
    /// A base, and a number for each tile of 512 × 512.
    Tiles { base: u64, each: u64 },
    /// A number for each tile, and for a small picture.
    Crops(u64),
    /// One fixed number for all pictures.
    Fixed(u64),
    /// Pixels divided by 750.
    Area,
}

const OLDER_CLAUDE: Rule = Rule::Squares { edge: 1_568, most: 1_568 };
const CLAUDE: Rule = Rule::Squares { edge: 2_016, most: 5_184 };
const GPT: Rule = patches(2_500, 120);

const fn patches(most: u32, hundredths: u64) -> Rule {
    Rule::Patches { most, hundredths }
}

/// Prefixes of models' names; the longest match counts.
const RULES: &[(&str, Rule)] = &[
    ("claude", CLAUDE),
    ("claude-3", OLDER_CLAUDE),
    ("claude-opus-4", OLDER_CLAUDE),
    ("claude-opus-4-7", CLAUDE),
    ("claude-opus-4-8", CLAUDE),
    ("claude-sonnet-4", OLDER_CLAUDE),
    ("claude-haiku-4", OLDER_CLAUDE),
    ("gpt-4", Rule::Tiles { base: 85, each: 170 }),
    ("gpt-4o-mini", Rule::Tiles { base: 2_833, each: 5_667 }),
    ("gpt-4.1-mini", patches(6_144, 162)),
    ("gpt-4.1-nano", patches(1_536, 246)),
    ("o1", Rule::Tiles { base: 75, each: 150 }),
    ("o3", Rule::Tiles { base: 75, each: 150 }),
    ("o4-mini", patches(1_536, 172)),
    ("gpt-5", Rule::Tiles { base: 70, each: 140 }),
    ("gpt-5-mini", patches(1_536, 120)),
    ("gpt-5-nano", patches(1_536, 150)),
    ("gpt-5.2", patches(6_144, 120)),
    ("gpt-5.3", patches(6_144, 120)),
    ("gpt-5.4", GPT),
    ("gpt-5.5", GPT),
    ("gpt-5.6", GPT),
    ("gpt-6", GPT),
    ("gemini", Rule::Fixed(1_120)),
    ("gemini-1", Rule::Fixed(258)),
    ("gemini-2", Rule::Crops(258)),
];

/// Input tokens that a model counts for a picture of this size.
pub fn tokens(model: &str, width: u32, height: u32) -> u64 {
    let (width, height) = (width.max(1), height.max(1));
    match rule(model) {
        Rule::Fixed(tokens) => tokens,
        Rule::Area => (u64::from(width) * u64::from(height)).div_ceil(750),
        Rule::Crops(each) if width <= 384 && height <= 384 => each,
        Rule::Crops(each) => {
            let (width, height) = within(width, height, 3_072);
            // The shorter edge divided by 1.5.
            let side = (width.min(height) * 2 / 3).clamp(256, 768);
            each * tiles(width, height, side)
        }
        Rule::Tiles { base, each } => {
            let (width, height) = within(width, height, EDGE);
            let short = width.min(height);
            let (width, height) = match short > 768 {
                true => (scaled(width, 768, short), scaled(height, 768, short)),
                false => (width, height),
            };
            base + each * tiles(width, height, 512)
        }
        Rule::Squares { edge, most } => {
            let (width, height) = within(width, height, edge);
            tiles(width, height, 28).min(most.into())
        }
        Rule::Patches { most, hundredths } => {
            let (width, height) = within(width, height, EDGE);
            (covering(width, height, most) * hundredths).div_ceil(100)
        }
    }
}

/// The longest edge, in pixels, that a model uses.
pub fn edge(model: &str) -> u32 {
    match rule(model) {
        Rule::Squares { edge, .. } => edge,
        Rule::Patches { .. } | Rule::Tiles { .. } | Rule::Crops(_) | Rule::Fixed(_) => EDGE,
        Rule::Area => 1_568,
    }
}

fn rule(model: &str) -> Rule {
    bounds::cap(RULES, model).unwrap_or(Rule::Area)
}

fn within(width: u32, height: u32, edge: u32) -> (u32, u32) {
    match width.max(height) {
        long if long > edge => (scaled(width, edge, long), scaled(height, edge, long)),
        _ => (width, height),
    }
}

fn scaled(length: u32, to: u32, of: u32) -> u32 {
    let scaled = u64::from(length) * u64::from(to) / u64::from(of);
    u32::try_from(scaled).unwrap_or(u32::MAX).max(1)
}

/// Patches of 32 × 32 pixels of a picture that is scaled down until at most `most` cover it.
fn covering(width: u32, height: u32, most: u32) -> u64 {
    let whole = tiles(width, height, PATCH);
    if whole <= most.into() {
        return whole;
    }
    let (side, w, h) = (f64::from(PATCH), f64::from(width), f64::from(height));
    let shrink = (side * side * f64::from(most) / (w * h)).sqrt();
    let used = |length: f64| {
        let patches = length * shrink / side;
        patches.floor() / patches
    };
    let shrink = shrink * used(w).min(used(h));
    // Rounds down to whole pixels, but not because of a float's error.
    let patches = |length: f64| (((length * shrink) + 1e-6).floor() / side).ceil().max(1.0);
    // A few thousand, and at least 1.
    let count = (patches(w) * patches(h)) as u64;
    count.min(most.into())
}

fn tiles(width: u32, height: u32, side: u32) -> u64 {
    u64::from(width.div_ceil(side)) * u64::from(height.div_ceil(side))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_count_as_the_vendors_say() {
        for (model, width, height, expected) in [
            ("claude-opus-5-5", 1_024, 1_024, 1_369),
            ("claude-opus-5-5", 3_840, 2_160, 2_952),
            ("eu.anthropic.claude-haiku-4-5-20251001-v1:0", 1_024, 1_024, 1_369),
            ("claude-haiku-4-5", 4_032, 3_024, 1_568),
            ("gpt-4o", 1_024, 1_024, 765),
            ("gpt-4o", 2_048, 4_096, 1_105),
            // OpenAI's examples: 1,024 and 1,452 patches (the budget of 1,536), 2,500 at 2,048².
            ("o4-mini", 1_024, 1_024, (1_024 * 172_u64).div_ceil(100)),
            ("o4-mini", 1_800, 2_400, (1_452 * 172_u64).div_ceil(100)),
            ("gpt-5.4", 1_024, 1_024, 1_229),
            ("gpt-5.4-mini", 2_048, 2_048, 3_000),
            ("gpt-6-luna", 256, 256, 77),
            // 1,536 × 2,048 after the first bound: 48 × 64.
            ("gpt-4.1-mini", 1_800, 2_400, (3_072 * 162_u64).div_ceil(100)),
            ("gpt-5-nano", 1_024, 1_024, 1_536),
            ("gemini-2.5-flash", 300, 200, 258),
            // Google's example: tiles of 360, 3 × 2.
            ("gemini-2.5-flash", 960, 540, 6 * 258),
            ("gemini-2.5-flash", 1_024, 1_024, 4 * 258),
            ("gemini-2.5-flash", 3_000, 4_000, 12 * 258),
            ("gemini-3.8-flash", 4_000, 3_000, 1_120),
            ("llava", 1_500, 500, 1_000),
        ] {
            assert_eq!(tokens(model, width, height), expected, "{model}, {width} × {height}");
        }
        assert_eq!((edge("claude-haiku-4-5"), edge("claude-sonnet-5-5")), (1_568, 2_016));
    }
}
