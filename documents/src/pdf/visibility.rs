//! Finds the letters of a page that are seen. Not seen are letters in the color of their background, under
//! something else, outside of a clip, or in no color. Hidden words may be meant for a model alone.

use std::{collections::HashMap, ops::Range};

use hayro_interpret::{
    FillRule,
    kurbo::{Affine, BezPath, PathEl, Point, Rect, Shape as _},
};

use super::page_budget::PageBudget;
use crate::colors::{Background, Rgb, WHITE};

/// Smaller areas are parts of a drawing, in points.
const SMALL: f64 = 3.0;
/// A clip of no more path elements than this is a shape, not letters.
const OUTLINES: usize = 12;
/// Most path elements of a shape of several parts that may hide something.
const MAX_ELEMENTS: usize = 1_000;

/// An area.
#[derive(Debug)]
struct Area {
    place: Rect,
    /// Its several parts, which may leave some of the place free, as a frame does. `None` if it has one.
    shape: Option<(BezPath, FillRule)>,
    /// `None` if it is not one color.
    color: Option<Rgb>,
    /// Whether nothing shows through.
    is_opaque: bool,
    is_picture: bool,
}

impl Area {
    fn contains(&self, at: Point) -> bool {
        self.place.contains(at)
            && self.shape.as_ref().is_none_or(|(path, rule)| match rule {
                FillRule::NonZero => path.winding(at) != 0,
                FillRule::EvenOdd => path.winding(at) % 2 != 0,
            })
    }
}

/// Areas in the order of drawing, indexed by position: maps have many thousands.
#[derive(Debug, Default)]
struct Areas {
    all: Vec<Area>,
    /// Indices of areas by squares of the page. The side of a square is a power of two no smaller than the
    /// area's longer side, so no area lies in more than four.
    squares: HashMap<(i32, i64, i64), Vec<usize>>,
    /// The powers in use.
    powers: Vec<i32>,
}

impl Areas {
    fn push(&mut self, area: Area) {
        let place = area.place;
        if !place.is_finite() {
            return;
        }
        // The cast fits: a page is some thousands of points.
        let power = place.width().max(place.height()).max(SMALL).log2().ceil() as i32;
        if !self.powers.contains(&power) {
            self.powers.push(power);
        }
        let (first, last) =
            (square(place.origin(), power), square((place.x1, place.y1).into(), power));
        for x in first.0..=last.0 {
            for y in first.1..=last.1 {
                self.squares.entry((power, x, y)).or_default().push(self.all.len());
            }
        }
        self.all.push(area);
    }

    /// Returns the last of the first `count` areas that contains a point.
    fn last_containing(&self, at: Point, count: usize) -> Option<&Area> {
        let last = |numbers: &[usize]| {
            let before = numbers.partition_point(|number| *number < count);
            numbers.iter().take(before).rev().copied().find(|number| self.contains(*number, at))
        };
        self.near(at).filter_map(last).max().and_then(|number| self.all.get(number))
    }

    /// Whether an opaque area, from index `from` on, contains a point. In a scan, pictures hide nothing.
    fn any_opaque_contains(&self, at: Point, from: usize, is_scan: bool) -> bool {
        self.near(at).any(|numbers| {
            let before = numbers.partition_point(|number| *number < from);
            let opaque = |number: &usize| {
                let area = self.all.get(*number);
                area.is_some_and(|area| area.is_opaque && !(is_scan && area.is_picture))
            };
            numbers.iter().skip(before).any(|number| opaque(number) && self.contains(*number, at))
        })
    }

    fn contains(&self, number: usize, at: Point) -> bool {
        self.all.get(number).is_some_and(|area| area.contains(at))
    }

    /// Returns the indices of the areas in each square of a point.
    fn near(&self, at: Point) -> impl Iterator<Item = &[usize]> {
        let squares = self.powers.iter().filter_map(move |power| {
            let (x, y) = square(at, *power);
            self.squares.get(&(*power, x, y))
        });
        squares.map(Vec::as_slice)
    }
}

/// Whether a rectangle stays one.
fn is_level(at: Affine) -> bool {
    let [a, b, c, d, ..] = at.as_coeffs();
    (b.abs() + c.abs()).min(a.abs() + d.abs()) < 1e-6
}

/// Returns the square of a point; its side is 2 to the `power`.
fn square(at: Point, power: i32) -> (i64, i64) {
    let side = f64::from(power).exp2();
    ((at.x / side).floor() as i64, (at.y / side).floor() as i64)
}

/// State of a letter when it was drawn.
#[derive(Debug)]
struct Letter {
    middle: Point,
    is_painted: bool,
    /// Whether its color differs from its background, and it lies within the clip.
    is_legible: bool,
    /// Number of areas drawn before it.
    areas_below: usize,
}

/// Tracks the visibility of letters while a page is drawn.
#[derive(Debug, Default)]
pub(super) struct Visibility {
    areas: Areas,
    letters: Vec<Letter>,
    clips: Vec<Rect>,
    /// Open clips made of letters: the number of clips open with each, and its letters. Drawing through
    /// such a clip paints its letters.
    letter_clips: Vec<(usize, Range<usize>)>,
    /// Number of letters drawn before the last area, picture or clip.
    letters_before_last_area: usize,
    /// Whether each open group hides what is below it.
    groups: Vec<bool>,
}

impl Visibility {
    /// Adds a letter by its middle. `color` is `None` if it is not one color.
    pub(super) fn add_letter(
        &mut self,
        middle: Point,
        size: f64,
        color: Option<Rgb>,
        is_painted: bool,
    ) {
        let stands_out = self.stands_out(middle, color, self.areas.all.len());
        let is_within = self.clips.last().is_none_or(|clip| {
            let clip = clip.inflate(0.5 * size, 0.5 * size);
            clip.contains(middle)
        });
        let is_legible = stands_out && is_within;
        self.letters.push(Letter {
            middle,
            is_painted,
            is_legible,
            areas_below: self.areas.all.len(),
        });
    }

    /// Whether a color differs from the background at a point, given by the first `areas` areas.
    fn stands_out(&self, at: Point, color: Option<Rgb>, areas: usize) -> bool {
        let of_area = |area: &Area| area.color.map_or(Background::Unknown, Background::Plain);
        let background =
            self.areas.last_containing(at, areas).map_or(Background::Plain(WHITE), of_area);
        color.is_none_or(|color| !background.hides(color))
    }

    /// Paints the letters of open clips that lie in an area.
    fn paint(&mut self, place: Rect, color: Option<Rgb>) {
        self.letters_before_last_area = self.letters.len();
        let clipped_letters =
            self.letter_clips.iter().flat_map(|(_, letters)| letters.clone()).collect::<Vec<_>>();
        for number in clipped_letters {
            let Some(letter) = self.letters.get(number) else { continue };
            let (middle, areas_below) = (letter.middle, letter.areas_below);
            if place.contains(middle) {
                let is_legible = self.stands_out(middle, color, areas_below);
                if let Some(letter) = self.letters.get_mut(number) {
                    (letter.is_painted, letter.is_legible) = (true, is_legible);
                }
            }
        }
    }

    /// Replaces a letter that is drawn again at its position.
    pub(super) fn replace_letter(
        &mut self,
        number: usize,
        middle: Point,
        size: f64,
        color: Option<Rgb>,
    ) {
        self.add_letter(middle, size, color, true);
        let last = self.letters.pop();
        if let (Some(letter), Some(last)) = (self.letters.get_mut(number), last) {
            *letter = last;
        }
    }

    /// Drops the letters from index `length` on.
    pub(super) fn truncate(&mut self, length: usize) {
        self.letters.truncate(length);
    }

    /// Adds a filled area. Returns whether it may hide something.
    pub(super) fn add_fill(
        &mut self,
        path: &BezPath,
        rule: FillRule,
        at: Affine,
        color: Option<Rgb>,
        is_opaque: bool,
    ) -> bool {
        let bounds = path.bounding_box();
        let place = self.clipped(at.transform_rect_bbox(bounds));
        self.paint(place, color);
        if place.width() < SMALL || place.height() < SMALL {
            return false;
        }
        // Other shapes may leave parts free.
        let is_full = is_level(at) && path.area().abs() > 0.98 * bounds.area();
        let parts = path.elements().iter().filter(|part| matches!(part, PathEl::MoveTo(_))).count();
        let is_simple = parts == 1 || path.elements().len() <= MAX_ELEMENTS;
        let is_opaque = is_opaque && is_full && is_simple && self.hides_below();
        let shape = (is_opaque && parts > 1).then(|| (at * path.clone(), rule));
        let color = color.filter(|_| is_opaque);
        self.areas.push(Area { place, shape, color, is_opaque, is_picture: false });
        true
    }

    /// Whether an opaque area, drawn now, hides what is below it.
    fn hides_below(&self) -> bool {
        self.groups.iter().all(|opaque| *opaque) && self.letter_clips.is_empty()
    }

    /// Adds a picture, which has no color.
    pub(super) fn add_picture(&mut self, at: Affine, place: Rect, is_opaque: bool) {
        let place = self.clipped(place);
        self.paint(place, None);
        let is_opaque = is_opaque && is_level(at) && self.hides_below();
        self.areas.push(Area { place, shape: None, color: None, is_opaque, is_picture: true });
    }

    /// Returns the part of an area that lies within the clip.
    pub(super) fn clipped(&self, place: Rect) -> Rect {
        self.clips.last().map_or(place, |clip| place.intersect(*clip))
    }

    pub(super) fn push_clip(&mut self, path: &BezPath) {
        let bounds = path.bounding_box();
        let within = self.clips.last().map_or(bounds, |clip| clip.intersect(bounds));
        self.clips.push(within);
        let last =
            self.letters.get(self.letters_before_last_area..).unwrap_or_default().iter().rev();
        let count = last.take_while(|letter| !letter.is_painted).count();
        let letters = self.letters.len() - count..self.letters.len();
        if path.elements().len() > OUTLINES && !letters.is_empty() {
            self.letter_clips.push((self.clips.len(), letters));
        }
        self.letters_before_last_area = self.letters.len();
    }

    pub(super) fn pop_clip(&mut self) {
        self.clips.pop();
        self.letter_clips.retain(|(depth, _)| *depth <= self.clips.len());
        self.letters_before_last_area = self.letters.len();
    }

    pub(super) fn push_group(&mut self, is_opaque: bool) {
        self.groups.push(is_opaque);
    }

    pub(super) fn pop_group(&mut self) {
        self.groups.pop();
    }

    /// Whether any letter is drawn in no color.
    pub(super) fn has_unpainted(&self) -> bool {
        self.letters.iter().any(|letter| !letter.is_painted)
    }

    /// Whether at least half of the letters are drawn in no color.
    pub(super) fn has_mostly_unpainted(&self) -> bool {
        let unpainted = self.letters.iter().filter(|letter| !letter.is_painted).count();
        unpainted * 2 >= self.letters.len()
    }

    /// Returns whether each letter is seen. In a scan, letters without a color and under pictures are. If
    /// no letter would be, all are.
    pub(super) fn visible_letters(&self, is_scan: bool, budget: &PageBudget) -> Vec<bool> {
        let is_covered = |letter: &Letter| {
            budget.check_time();
            self.areas.any_opaque_contains(letter.middle, letter.areas_below, is_scan)
        };
        let seen: Vec<bool> = self
            .letters
            .iter()
            .map(|letter| match letter.is_painted {
                true => letter.is_legible && !is_covered(letter),
                false => is_scan,
            })
            .collect();
        if seen.contains(&true) { seen } else { vec![true; seen.len()] }
    }
}
