//! A page as a picture, for models that look at it.

use hayro::{PixmapSettings, RenderCache, RenderSettings, vello_cpu::color::palette::css::WHITE};
use hayro_interpret::{InterpreterSettings, hayro_syntax::page::Page};
use image::{DynamicImage, RgbaImage};

use crate::{
    limits::Limits,
    pictures::{Picture, encoded},
};

/// Pixels of a point at most: 200 dots an inch show the small print.
const FINEST: f32 = 200.0 / 72.0;

/// Bytes of a page's picture. Twenty of them, and what base64 adds, are less than the 20 MB that
/// Gemini takes inline in a request (<https://ai.google.dev/gemini-api/docs/image-understanding>).
const MAX_BYTES: u64 = 700_000;

/// Draws a page on white paper. `None` where it has no area.
pub(super) fn of(page: &Page<'_>, limits: &Limits) -> Option<Picture> {
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
    // On white paper nothing is transparent.
    let pixels = RgbaImage::from_raw(width, height, drawn.data_as_u8_slice().to_vec())?;
    let picture = DynamicImage::from(DynamicImage::from(pixels).to_rgb8());
    let limits = Limits { picture_bytes: limits.picture_bytes.min(MAX_BYTES), ..*limits };
    encoded(&picture, true, &limits).ok()
}
