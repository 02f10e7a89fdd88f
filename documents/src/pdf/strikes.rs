//! Struck letters: a thin level line runs through their middle, from the first letter to the last.

use std::rc::Rc;

use hayro_interpret::{
    hayro_syntax::{
        object::{Array, Dict, Name},
        page::Page,
        xref::XRef,
    },
    kurbo::{Affine, Point, Rect},
};

use super::{
    forms::{HIDDEN, dictionaries},
    glyph::Glyph,
    layout::is_rtl,
    page_budget::PageBudget,
    rules::Rules,
};

/// Mark of struck text, on both sides.
const MARK: &str = "~~";
/// Lowest and highest position of a line above the baseline, in ems.
const HEIGHT: (f64, f64) = (0.15, 0.45);
/// Thickest line, in ems.
const THICK: f64 = 0.15;
/// How far a line may end from the first or last letter, in ems: it may strike a space.
const SPARE: f64 = 0.7;
/// Most lines of a page; one with more is a drawing.
const MAX_LINES: usize = 2_000;
/// Numbers of marked text in one list of places.
const QUAD: usize = 8;

/// A level line.
#[derive(Debug, Clone, Copy)]
struct Line {
    y: f64,
    x: (f64, f64),
    thickness: f64,
}

impl Line {
    /// Whether it runs through a letter on whose middle it lies.
    fn strikes(&self, glyph: &Glyph) -> bool {
        let middle = f64::midpoint(glyph.x.0, glyph.x.1);
        self.thickness <= THICK * glyph.size && (self.x.0..self.x.1).contains(&middle)
    }
}

/// Puts marks around struck letters. `struck_by_notes` are the places that notes strike.
pub(super) fn mark_struck(
    glyphs: &mut [Glyph],
    rules: &Rules,
    struck_by_notes: &[Rect],
    budget: &PageBudget,
) {
    let lines = find_lines(rules, struck_by_notes);
    let mut struck: Vec<Vec<usize>> = vec![Vec::new(); lines.len()];
    for (place, glyph) in glyphs.iter().enumerate().filter(|(_, glyph)| glyph.turn == 0) {
        let (lowest, highest) = (glyph.y - HEIGHT.0 * glyph.size, glyph.y - HEIGHT.1 * glyph.size);
        let first = lines.partition_point(|line| line.y < highest);
        let near = lines.iter().zip(&mut struck).skip(first);
        let mut near = near.take_while(|(line, _)| line.y <= lowest);
        if let Some((_, letters)) = near.find(|(line, _)| line.strikes(glyph)) {
            letters.push(place);
        }
        budget.check_time();
    }
    for (line, letters) in lines.iter().zip(&struck) {
        mark_letters(glyphs, line, letters);
    }
}

/// Puts marks around the letters of a line, unless the line goes on beyond them.
fn mark_letters(glyphs: &mut [Glyph], line: &Line, letters: &[usize]) {
    let letters = letters.iter().filter_map(|place| Some((*place, glyphs.get(*place)?)));
    let letters: Vec<_> = letters.filter(|(_, glyph)| !glyph.text.trim().is_empty()).collect();
    let first = letters.iter().min_by(|a, b| a.1.x.0.total_cmp(&b.1.x.0));
    let last = letters.iter().max_by(|a, b| a.1.x.1.total_cmp(&b.1.x.1));
    let (Some((first, left)), Some((last, right))) = (first, last) else { return };
    let has_letter = letters.iter().any(|(_, glyph)| glyph.text.contains(char::is_alphanumeric));
    if !has_letter
        || left.x.0 - line.x.0 > SPARE * left.size
        || line.x.1 - right.x.1 > SPARE * right.size
    {
        return;
    }
    let (first, last) = (*first, *last);
    for (place, is_first) in [(first, true), (last, false)] {
        if let Some(glyph) = glyphs.get_mut(place) {
            // Its text is in the order of reading.
            let text: &str = &glyph.text;
            let marked = match is_first != text.contains(is_rtl) {
                true => format!("{MARK}{text}"),
                false => format!("{text}{MARK}"),
            };
            glyph.text = Rc::from(marked);
        }
    }
}

/// Returns the lines of a page from top to bottom; none if there are too many. Lines that continue each
/// other are one.
fn find_lines(rules: &Rules, struck_by_notes: &[Rect]) -> Vec<Line> {
    let level = rules.level().iter().map(|(place, thickness)| Line {
        y: place.center().y,
        x: (place.x0, place.x1),
        thickness: *thickness,
    });
    let struck_by_notes = struck_by_notes.iter().map(|place| Line {
        y: place.center().y,
        x: (place.x0, place.x1),
        thickness: 0.0,
    });
    let mut lines: Vec<Line> = level.chain(struck_by_notes).collect();
    lines.sort_by(|a, b| a.y.total_cmp(&b.y).then(a.x.0.total_cmp(&b.x.0)));
    lines.dedup_by(|next, line| {
        let continues_line = (next.y - line.y).abs() < 0.1 && next.x.0 <= line.x.1 + 1.0;
        if continues_line {
            line.x.1 = line.x.1.max(next.x.1);
        }
        continues_line
    });
    if lines.len() > MAX_LINES { Vec::new() } else { lines }
}

/// Returns the places that notes without an appearance of their own strike.
pub(super) fn struck_by_notes(page: &Page<'_>, xref: &XRef, turned: Affine) -> Vec<Rect> {
    let Some(notes) = page.raw().get::<Array<'_>>("Annots") else { return Vec::new() };
    let struck = dictionaries(&notes, xref).filter(|note| {
        note.get::<Name<'_>>("Subtype").is_some_and(|name| name.as_str() == "StrikeOut")
            && !note.contains_key("AP")
            && note.get::<u32>("F").is_none_or(|flags| flags & HIDDEN == 0)
    });
    struck
        .flat_map(|note: Dict<'_>| marked_places(&note))
        .map(|it| turned.transform_rect_bbox(it))
        .collect()
}

/// Returns the places of marked text.
fn marked_places(note: &Dict<'_>) -> Vec<Rect> {
    let Some(numbers) = note.get::<Array<'_>>("QuadPoints") else { return Vec::new() };
    let numbers: Vec<f64> = numbers.iter::<f64>().take(QUAD * MAX_LINES).collect();
    let corners = |quad: &[f64]| {
        let mut points = quad.chunks_exact(2).map(|pair| Point::new(pair[0], pair[1]));
        let first = points.next()?;
        Some(points.fold(Rect::from_points(first, first), |all, point| all.union_pt(point)))
    };
    numbers.chunks_exact(QUAD).filter_map(corners).collect()
}
