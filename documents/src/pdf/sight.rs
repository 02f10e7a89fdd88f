//! What of a page's letters is seen: not what is drawn in the colour of its ground, under something
//! else, outside of a clip, or in no colour at all. Hidden words may be meant for a model alone.

use std::ops::Range;

use hayro_interpret::kurbo::{Affine, BezPath, Point, Rect, Shape as _};

/// Colours that are no further apart, of 255, are one to who reads.
const SAME: u8 = 24;
/// What draws more areas is a map or a picture: later ones hide nothing.
const MAX_AREAS: usize = 400;
/// Smaller areas are parts of a drawing, in points.
const SMALL: f64 = 3.0;
/// A clip of fewer lines and curves is a form, and none of letters.
const OUTLINES: usize = 12;
/// The paper.
const WHITE: [u8; 3] = [255; 3];

/// An area of one colour; none where it lets something through.
#[derive(Debug)]
struct Area {
    place: Rect,
    colour: Option<[u8; 3]>,
}

/// A letter as it was when it was drawn.
#[derive(Debug)]
struct Letter {
    middle: Point,
    is_painted: bool,
    /// Of another colour than its ground, and within the clip.
    is_clear: bool,
    /// Areas that were drawn before it.
    below: usize,
}

/// Follows a page while it is drawn.
#[derive(Debug, Default)]
pub(super) struct Sight {
    areas: Vec<Area>,
    letters: Vec<Letter>,
    clips: Vec<Rect>,
    /// Open clips that are letters: how many clips are open with it, and which letters. What is drawn
    /// through them paints these.
    cut: Vec<(usize, Range<usize>)>,
    /// Letters that were drawn before the last area, picture or clip.
    before: usize,
    /// Open groups: whether each hides what is below it.
    groups: Vec<bool>,
}

impl Sight {
    /// A letter, by the middle of it. `colour` is none where it is not one colour.
    pub(super) fn letter(
        &mut self,
        middle: Point,
        size: f64,
        colour: Option<[u8; 3]>,
        is_painted: bool,
    ) {
        let stands_out = self.stands_out(middle, colour, self.areas.len());
        let is_within = self.clips.last().is_none_or(|clip| {
            let clip = clip.inflate(0.5 * size, 0.5 * size);
            clip.contains(middle)
        });
        let is_clear = stands_out && is_within;
        self.letters.push(Letter { middle, is_painted, is_clear, below: self.areas.len() });
    }

    /// Whether a colour is another than that of the ground at a place, on which so many areas are.
    fn stands_out(&self, at: Point, colour: Option<[u8; 3]>, areas: usize) -> bool {
        let below = self.areas.iter().take(areas).rev().find(|area| area.place.contains(at));
        let is_known = self.areas.len() < MAX_AREAS;
        let ground = below.map_or(Some(WHITE), |area| area.colour).filter(|_| is_known);
        match (colour, ground) {
            (Some(colour), Some(ground)) => {
                colour.iter().zip(ground).any(|(one, other)| one.abs_diff(other) >= SAME)
            }
            _ => true,
        }
    }

    /// What is drawn through clips of letters paints them.
    fn paint(&mut self, place: Rect, colour: Option<[u8; 3]>) {
        self.before = self.letters.len();
        let cut = self.cut.iter().flat_map(|(_, letters)| letters.clone()).collect::<Vec<_>>();
        for number in cut {
            let Some(letter) = self.letters.get(number) else { continue };
            let (middle, below) = (letter.middle, letter.below);
            if place.contains(middle) {
                let is_clear = self.stands_out(middle, colour, below);
                if let Some(letter) = self.letters.get_mut(number) {
                    (letter.is_painted, letter.is_clear) = (true, is_clear);
                }
            }
        }
    }

    /// The same letter is drawn again at its place.
    pub(super) fn again(
        &mut self,
        number: usize,
        middle: Point,
        size: f64,
        colour: Option<[u8; 3]>,
        is_painted: bool,
    ) {
        self.letter(middle, size, colour, is_painted);
        let last = self.letters.pop();
        if let (Some(letter), Some(last)) = (self.letters.get_mut(number), last) {
            *letter = last;
        }
    }

    /// The letters from this one on are replaced by others.
    pub(super) fn truncate(&mut self, length: usize) {
        self.letters.truncate(length);
    }

    /// An area that is filled.
    pub(super) fn fill(&mut self, path: &BezPath, at: Affine, colour: Option<[u8; 3]>) {
        let bounds = path.bounding_box();
        let [a, b, c, d, ..] = at.as_coeffs();
        let is_level = (b.abs() + c.abs()).min(a.abs() + d.abs()) < 1e-6;
        let mut place = at.transform_rect_bbox(bounds);
        if let Some(clip) = self.clips.last() {
            place = place.intersect(*clip);
        }
        self.paint(place, colour);
        if self.areas.len() >= MAX_AREAS || place.width() < SMALL || place.height() < SMALL {
            return;
        }
        // Of other forms it is not known what they leave free.
        let is_full = is_level && path.area().abs() > 0.98 * bounds.area();
        let is_opaque = self.groups.iter().all(|opaque| *opaque);
        let colour = colour.filter(|_| is_full && is_opaque && self.cut.is_empty());
        self.areas.push(Area { place, colour });
    }

    /// A picture has no colour of its own, and hides nothing: words may be read in it.
    pub(super) fn picture(&mut self, place: Rect) {
        self.paint(place, None);
        if self.areas.len() < MAX_AREAS {
            self.areas.push(Area { place, colour: None });
        }
    }

    pub(super) fn clip(&mut self, path: &BezPath) {
        let bounds = path.bounding_box();
        let within = self.clips.last().map_or(bounds, |clip| clip.intersect(bounds));
        self.clips.push(within);
        let last = self.letters.get(self.before..).unwrap_or_default().iter().rev();
        let count = last.take_while(|letter| !letter.is_painted).count();
        let letters = self.letters.len() - count..self.letters.len();
        if path.elements().len() > OUTLINES && !letters.is_empty() {
            self.cut.push((self.clips.len(), letters));
        }
        self.before = self.letters.len();
    }

    pub(super) fn pop_clip(&mut self) {
        self.clips.pop();
        self.cut.retain(|(depth, _)| *depth <= self.clips.len());
        self.before = self.letters.len();
    }

    pub(super) fn group(&mut self, is_opaque: bool) {
        self.groups.push(is_opaque);
    }

    pub(super) fn pop_group(&mut self) {
        self.groups.pop();
    }

    /// Whether most letters are drawn in no colour.
    pub(super) fn has_mostly_unpainted(&self) -> bool {
        let unpainted = self.letters.iter().filter(|letter| !letter.is_painted).count();
        unpainted * 2 >= self.letters.len()
    }

    /// Whether each letter is seen; in a `scan`, those without a colour are, and so are all where
    /// none would be.
    pub(super) fn seen(&self, scan: bool) -> Vec<bool> {
        let is_covered = |letter: &Letter| {
            let above = self.areas.get(letter.below..).unwrap_or_default();
            above.iter().any(|area| area.colour.is_some() && area.place.contains(letter.middle))
        };
        let seen: Vec<bool> = self
            .letters
            .iter()
            .map(|letter| match letter.is_painted {
                true => letter.is_clear && !is_covered(letter),
                false => scan,
            })
            .collect();
        if seen.contains(&true) { seen } else { vec![true; seen.len()] }
    }
}
