//! Straight lines that a page draws, level or upright: the rules of its tables.

use hayro_interpret::kurbo::{Affine, BezPath, PathEl, Point, Rect, Shape as _};

/// A page with this many lines is a map, not a table.
const MAX_RULES: usize = 50_000;
/// A filled area no wider than this is a line, in points.
const THIN: f64 = 3.0;
/// Anything shorter is a dot or a part of a letter, in points.
const SHORT: f64 = 4.0;
/// How far the ends of a line may deviate from level or upright, in points.
const LEVEL: f64 = 0.5;

/// Lines as pairs of their ends, in points of the page.
#[derive(Debug, Default)]
pub(super) struct Rules {
    all: Vec<(Point, Point)>,
    /// Level lines with their thickness.
    level: Vec<(Rect, f64)>,
}

impl Rules {
    /// Returns the lines; none if there are too many for a table.
    pub(super) fn all(&self) -> &[(Point, Point)] {
        if self.all.len() < MAX_RULES { &self.all } else { &[] }
    }

    /// Returns the level lines with their thickness.
    pub(super) fn level(&self) -> &[(Rect, f64)] {
        &self.level
    }

    /// Adds the straight lines of a path. `width` is that of a stroke; a filled path has none.
    pub(super) fn draw(&mut self, path: &BezPath, place: Affine, width: Option<f64>) {
        if self.all.len() >= MAX_RULES {
            return;
        }
        match width {
            Some(width) => self.stroke(path, place, width * place.determinant().abs().sqrt()),
            None => self.fill(path, place),
        }
    }

    fn stroke(&mut self, path: &BezPath, place: Affine, width: f64) {
        let (mut first, mut last) = (Point::ZERO, Point::ZERO);
        for element in path.elements() {
            match *element {
                PathEl::MoveTo(point) => {
                    first = place * point;
                    last = first;
                }
                PathEl::LineTo(point) => {
                    let point = place * point;
                    self.add(last, point, width);
                    last = point;
                }
                PathEl::QuadTo(_, point) | PathEl::CurveTo(_, _, point) => last = place * point,
                PathEl::ClosePath => {
                    self.add(last, first, width);
                    last = first;
                }
            }
        }
    }

    /// Adds the thin areas of a path: programs draw lines as filled areas, many in one path.
    fn fill(&mut self, path: &BezPath, place: Affine) {
        let parts = path.elements().chunk_by(|_, next| !matches!(next, PathEl::MoveTo(_)));
        for part in parts {
            if part.len() > 6
                || part
                    .iter()
                    .any(|element| matches!(element, PathEl::QuadTo(..) | PathEl::CurveTo(..)))
            {
                continue;
            }
            let area: Rect = place.transform_rect_bbox(part.bounding_box());
            let middle = area.center();
            if area.height() <= THIN && area.width() > area.height() {
                let ends = (Point::new(area.x0, middle.y), Point::new(area.x1, middle.y));
                self.add(ends.0, ends.1, area.height());
            } else if area.width() <= THIN {
                let ends = (Point::new(middle.x, area.y0), Point::new(middle.x, area.y1));
                self.add(ends.0, ends.1, area.width());
            }
        }
    }

    fn add(&mut self, from: Point, to: Point, thickness: f64) {
        let along = to - from;
        let (short, long) = (along.x.abs().min(along.y.abs()), along.x.abs().max(along.y.abs()));
        if short <= LEVEL && long >= SHORT && long.is_finite() && self.all.len() < MAX_RULES {
            self.all.push((from, to));
            if short == along.y.abs() {
                self.level.push((Rect::from_points(from, to), thickness));
            }
        }
    }
}
