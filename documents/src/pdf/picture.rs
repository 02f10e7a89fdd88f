//! Draws a page as a picture for models that accept pictures.

use hayro::{PixmapSettings, RenderCache, RenderSettings, vello_cpu::color::palette::css::WHITE};
use hayro_interpret::{InterpreterSettings, hayro_syntax::page::Page};
use image::{DynamicImage, RgbaImage};

use crate::{
    limits::Limits,
    pictures::{Picture, encode_within_bounds},
};

/// Most pixels per point: at 200 dots an inch small print is legible.
const FINEST: f32 = 200.0 / 72.0;

/// Most bytes of a page's picture. Twenty of them in base64 are less than the 20 MB that Gemini takes
/// inline in a request (<https://ai.google.dev/gemini-api/docs/image-understanding>).
const MAX_BYTES: u64 = 700_000;

/// Draws a page on white paper. `None` if it has no area or cannot be encoded.
pub(super) fn render_page(page: &Page<'_>, limits: &Limits) -> Option<Picture> {
    let (width, height) = page.render_dimensions();
    let scale = (limits.picture_edge as f32 / width.max(height)).min(FINEST);
    if !scale.is_finite() || width * scale < 1.0 || height * scale < 1.0 {
        return None;
    }
    let drawn = hayro::render(
        page,
        &RenderCache::new(),
        &InterpreterSettings::default(),
        &RenderSettings::default(),
        &PixmapSettings { x_scale: scale, y_scale: scale, bg_color: WHITE },
    );
    let (width, height) = (u32::from(drawn.width()), u32::from(drawn.height()));
    // On white paper no pixel is transparent.
    let pixels = RgbaImage::from_raw(width, height, drawn.data_as_u8_slice().to_vec())?;
    let picture = DynamicImage::from(DynamicImage::from(pixels).to_rgb8());
    let limits = Limits { picture_bytes: limits.picture_bytes.min(MAX_BYTES), ..*limits };
    encode_within_bounds(&picture, true, &limits).ok()
}
