//! Tiling patterns fill an area with a drawing, cell by cell. Some programs draw words so.

use std::collections::HashMap;

use hayro_interpret::{
    BlendMode, CacheKey as _, ClipPath, Device, DrawMode, DrawProps, Image, ImageDrawProps, Paint,
    SoftMask,
    font::GlyphRun,
    kurbo::{Affine, BezPath, Rect},
    pattern::{Pattern, TilingPattern},
};

use super::page_budget::PageBudget;

/// Cells that lie within an area up to this fraction of them lie within it.
const TOLERANCE: f64 = 0.01;

/// Most cells along a side that are drawn if none lies within the area.
const CELLS: i64 = 2;

/// The patterns of a page: whether each draws letters or pictures.
#[derive(Debug, Default)]
pub(super) struct Tilings(HashMap<u128, bool>);

impl Tilings {
    /// Returns the positions of the cells to draw in an area: one that lies within it, since the others
    /// repeat its words, or else those that lie partly within it. None for patterns of lines and areas.
    pub(super) fn cells<'a>(
        &mut self,
        pattern: &TilingPattern<'a>,
        area: Rect,
        budget: &PageBudget,
    ) -> Vec<Affine> {
        let has_words = self.0.entry(pattern.cache_key()).or_insert_with(|| {
            let mut finder = WordFinder { found: false, budget };
            pattern.interpret(&mut finder, pattern.matrix, false);
            finder.found
        });
        if !*has_words || pattern.matrix.determinant() == 0.0 {
            return Vec::new();
        }
        let area = pattern.matrix.inverse().transform_rect_bbox(area);
        let (bounds, steps) = (pattern.bbox, (pattern.x_step, pattern.y_step));
        let x = numbers((bounds.x0, bounds.x1), (area.x0, area.x1), steps.0.into());
        let y = numbers((bounds.y0, bounds.y1), (area.y0, area.y1), steps.1.into());
        let place = |x: f64, y: f64| {
            pattern.matrix * Affine::translate((x * f64::from(steps.0), y * f64::from(steps.1)))
        };
        y.iter().flat_map(|y| x.iter().map(|x| place(*x, *y))).collect()
    }
}

/// Returns the numbers of the cells to draw along a side, for the sides of the first cell and of the area.
fn numbers(cell: (f64, f64), area: (f64, f64), step: f64) -> Vec<f64> {
    let near = TOLERANCE * step.abs();
    let between = |from: f64, to: f64| {
        let (first, last) = (from.min(to).ceil(), from.max(to).floor());
        // The cast saturates.
        let count = (last - first + 1.0) as i64;
        (0..count.min(CELLS)).map(|at| first + at as f64).collect::<Vec<f64>>()
    };
    let whole = if area.1 - area.0 + 2.0 * near < cell.1 - cell.0 {
        Vec::new()
    } else {
        between((area.0 - cell.0 - near) / step, (area.1 - cell.1 + near) / step)
    };
    match whole.first() {
        Some(first) => vec![*first],
        None => between((area.0 - cell.1 + near) / step, (area.1 - cell.0 - near) / step),
    }
}

/// Returns the pattern of a paint, if it is one of cells.
pub(super) fn tiling_of<'p, 'a>(paint: &'p Paint<'a>) -> Option<&'p TilingPattern<'a>> {
    match paint {
        Paint::Pattern(pattern) => match &**pattern {
            Pattern::Tiling(pattern) => Some(pattern),
            Pattern::Shading(_) => None,
        },
        Paint::Color(_) => None,
    }
}

/// Finds out whether letters or pictures are drawn.
struct WordFinder<'b> {
    found: bool,
    budget: &'b PageBudget,
}

impl<'a> Device<'a> for WordFinder<'_> {
    fn draw_glyph_run(&mut self, _: &GlyphRun<'_, 'a>, _: DrawProps<'a>, _: &DrawMode) {
        self.budget.check_time();
        self.found = true;
    }

    fn draw_image(&mut self, _: Image<'a, '_>, _: ImageDrawProps<'a>) {
        self.budget.check_time();
        self.found = true;
    }

    fn draw_path(&mut self, _: &BezPath, props: DrawProps<'a>, _: &DrawMode) {
        self.budget.check_time();
        self.found |= tiling_of(&props.paint).is_some();
    }

    /// Also called for each form, even for one that draws nothing.
    fn push_clip_path(&mut self, _: &ClipPath) {
        self.budget.check_time();
    }

    fn push_transparency_group(&mut self, _: f32, _: Option<SoftMask<'a>>, _: BlendMode) {
        self.budget.check_time();
    }

    fn pop_clip(&mut self) {}
    fn pop_transparency_group(&mut self) {}
}
