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
}

impl Rules {
    /// Returns the lines; none if there are too many for a table.
    pub(super) fn all(&self) -> &[(Point, Point)] {
        if self.all.len() < MAX_RULES { &self.all } else { &[] }
    }

    /// Adds the straight lines of a path.
    pub(super) fn draw(&mut self, path: &BezPath, place: Affine, is_stroked: bool) {
        if self.all.len() >= MAX_RULES {
            return;
        }
        if is_stroked { self.stroke(path, place) } else { self.fill(path, place) }
    }

    fn stroke(&mut self, path: &BezPath, place: Affine) {
        let (mut first, mut last) = (Point::ZERO, Point::ZERO);
        for element in path.elements() {
            match *element {
                PathEl::MoveTo(point) => {
                    first = place * point;
                    last = first;
                }
                PathEl::LineTo(point) => {
                    let point = place * point;
                    self.add(last, point);
                    last = point;
                }
                PathEl::QuadTo(_, point) | PathEl::CurveTo(_, _, point) => last = place * point,
                PathEl::ClosePath => {
                    self.add(last, first);
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
                self.add(Point::new(area.x0, middle.y), Point::new(area.x1, middle.y));
            } else if area.width() <= THIN {
                self.add(Point::new(middle.x, area.y0), Point::new(middle.x, area.y1));
            }
        }
    }

    fn add(&mut self, from: Point, to: Point) {
        let along = to - from;
        let (short, long) = (along.x.abs().min(along.y.abs()), along.x.abs().max(along.y.abs()));
        if short <= LEVEL && long >= SHORT && long.is_finite() && self.all.len() < MAX_RULES {
            self.all.push((from, to));
        }
    }
}
