//! Letters that a page draws, with their positions.

use std::{
    collections::{HashMap, HashSet},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use hayro_interpret::{
    BlendMode, ClipPath, Context, Device, DrawMode, DrawProps, FillRule, Image, ImageDrawProps,
    InterpreterCache, InterpreterSettings, InterpreterWarning, Paint, RectExt as _, RenderContent,
    SoftMask,
    font::{Glyph as Drawn, GlyphRun},
    hayro_cmap::WritingMode,
    hayro_syntax::{
        object::{Array, Dict, Rect as PdfRect, Stream, String as PdfString},
        page::Page,
    },
    interpret_page,
    kurbo::{Affine, BezPath, Point, Rect, Shape as _, Vec2},
    pattern::{Pattern, TilingPattern},
};

use super::{
    accents, comments, content, form_contents,
    forms::{self, FieldShape, FieldValue},
    glyph::Glyph,
    layers::Layers,
    meaning::{Meanings, UNKNOWN, is_inked, is_text},
    page_budget::PageBudget,
    repair::repair,
    rules::Rules,
    strikes,
    structure::{Replacement, Structure},
    tiling::{Tilings, tiling_of},
    visibility::Visibility,
};

/// Most letters of one page; a page that draws more is no text.
const MAX_GLYPHS: usize = 2_000_000;

/// Most bytes of a stream that is empty when decoded.
const EMPTY: u32 = 16;

/// Up to this many glyphs of unknown meaning are taken for bullets and rules.
const FEW_SIGNS: usize = 8;

/// [`UNKNOWN`] as text.
const UNKNOWN_TEXT: &str = "\u{fffd}";

/// Glyph units in an em.
const EM: f64 = 1_000.0;

/// Most codes whose meaning is kept while a string is drawn.
const MAX_KNOWN_CODES: usize = 256;

/// Height in points of the bands of a page by which drawn letters are found again.
const BAND: f64 = 32.0;

/// Text turned by less than this from a quarter turn is not slanted, in degrees: scanned pages are a
/// little askew.
const SLANT: f64 = 3.0;

/// Letters narrower than this fraction of their height are not seen.
const NARROW: f64 = 0.1;

/// Pictures that cover this fraction of a page make it a scan.
const MOST_OF_PAGE: f64 = 0.8;

/// A scan with fewer letters drawn beside its picture, such as a stamp, has no text of its own.
const FEW_LETTERS: usize = 100;

/// Largest size of words that are drawn as lines or as a picture, in points.
const MAX_DRAWN_SIZE: f64 = 12.0;

/// Letters smaller than this, in points, are not seen if the page has letters more than twice as large.
const TINY: f64 = 2.0;

/// Deepest nesting of patterns that are painted with patterns; the interpreter bounds that of forms
/// alone.
const MAX_TILINGS: usize = 4;

/// What is less opaque is not seen.
const TRANSPARENT: f32 = 0.03;

/// The content of a page.
#[derive(Debug, Default)]
pub(super) struct PageLetters {
    pub(super) glyphs: Vec<Glyph>,
    /// Straight lines.
    pub(super) rules: Rules,
    /// Whether it draws a picture.
    pub(super) has_picture: bool,
    /// Number of letters of unknown meaning. U+FFFD stands for each if they are few.
    pub(super) unknown: usize,
    /// Whether a font could not be read at all.
    has_lost_font: bool,
    /// Letters that are not seen.
    pub(super) hidden: Vec<Glyph>,
    /// Whether it is a scan without a layer of text.
    is_bare_scan: bool,
    /// Whether its content could not be read to the end.
    pub(super) is_cut_off: bool,
}

impl PageLetters {
    /// Whether the page shows more than its text contains.
    pub(super) fn shows_more(&self, words: &str) -> bool {
        let letters = words.chars().filter(|c| !c.is_whitespace());
        let is_stamped_scan = self.is_bare_scan && letters.take(FEW_LETTERS).count() < FEW_LETTERS;
        self.has_lost_font
            || (words.is_empty() && self.has_picture)
            || is_stamped_scan
            || self.is_mostly_unknown()
    }

    /// Adds letters that are drawn only with all layers on to those that are not seen.
    pub(super) fn add_letters_of_layers(&mut self, all_on: Self) {
        // Tenths of a point.
        let place = |glyph: &Glyph| {
            let [x, y] = [glyph.x.0, glyph.y].map(|at| (at * 10.0).round() as i64);
            (Rc::clone(&glyph.text), x, y)
        };
        let known: HashSet<_> = self.glyphs.iter().chain(&self.hidden).map(place).collect();
        let others = all_on.glyphs.into_iter().chain(all_on.hidden);
        self.hidden.extend(others.filter(|glyph| !known.contains(&place(glyph))));
    }

    fn is_mostly_unknown(&self) -> bool {
        self.unknown > FEW_SIGNS && self.unknown * 20 > self.glyphs.len()
    }
}

/// Draws a page's content and its annotations (fields and notes), and collects the letters.
///
/// Unwinds where the page takes more than a page [may](super::page_budget).
pub(super) fn collect_letters<'a>(
    page: &Page<'a>,
    layers: &Layers<'a>,
    structure: &Structure<'a>,
    cache: &InterpreterCache<'a>,
    budget: PageBudget,
) -> PageLetters {
    let font_lost = Arc::new(AtomicBool::new(false));
    let lost = Arc::clone(&font_lost);
    let settings = InterpreterSettings {
        warning_sink: Arc::new(move |warning| {
            if matches!(warning, InterpreterWarning::UnsupportedFont) {
                lost.store(true, Ordering::Relaxed);
            }
        }),
        // `content::draw_content` draws the content separately.
        render_content: RenderContent::ANNOTATIONS,
        ..InterpreterSettings::default()
    };
    let (width, height) = page.render_dimensions();
    let bounds = Rect::new(0.0, 0.0, f64::from(width), f64::from(height));
    let turned = page.initial_transform(true);
    let turned = Affine::new(turned.as_coeffs());
    let new_context = || Context::new(turned, bounds, cache, layers.states, settings.clone());
    let new_collector = || LetterCollector {
        page: PageLetters::default(),
        bounds,
        meanings: Meanings::read(page),
        open_marked_content: Vec::new(),
        structure,
        replacements: structure.replacements(page),
        drawn: None,
        open_replacements: 0,
        is_hidden_layer: Vec::new(),
        positions_by_letter: HashMap::new(),
        visibility: Visibility::default(),
        tilings: Tilings::default(),
        open_tilings: 0,
        budget: budget.clone(),
        picture_area: 0.0,
        annotation_letters: None,
        layers,
        open_hidden_layers: 0,
        hidden_notes: hidden_notes(page, layers, turned),
        has_reached_end: false,
    };
    let content = content::page_content(page);
    let (mut context, mut collector) = (new_context(), new_collector());
    content::draw_content(page, &content, &mut context, &mut collector);
    if !collector.has_reached_end {
        (context, collector) = (new_context(), new_collector());
        let content = repair(&content);
        content::draw_content(page, &content, &mut context, &mut collector);
    }
    let objects = &page.resources().x_objects;
    collector.page.is_cut_off = !collector.has_reached_end
        || form_contents::has_cut_off_form(objects, &content, &collector.budget);
    collector.annotation_letters = Some(Vec::new());
    interpret_page(page, &mut context, &mut collector);
    collector.page.unknown += collector.meanings.unknown;
    collector.move_hidden_letters();
    accents::join_accents(&mut collector.page.glyphs);
    if collector.page.is_mostly_unknown() {
        collector.page.glyphs.retain(|glyph| !glyph.text.contains(UNKNOWN));
    }
    let struck = strikes::struck_by_notes(page, layers.xref, turned);
    strikes::mark_struck(
        &mut collector.page.glyphs,
        &collector.page.rules,
        &struck,
        &collector.budget,
    );
    for value in forms::field_values(page, layers) {
        collector.add_field_value(&value, turned.transform_rect_bbox(value.place));
    }
    collector.page.has_lost_font = font_lost.load(Ordering::Relaxed);
    collector.page
}

/// Whether the content of a page, or a part of it, is not empty but decodes to nothing.
pub(super) fn is_damaged(page: &Page<'_>) -> bool {
    let contents = page.raw().get::<Array<'_>>("Contents").map_or_else(
        || page.raw().get::<Stream<'_>>("Contents").into_iter().collect::<Vec<_>>(),
        |parts| parts.iter::<Stream<'_>>().collect(),
    );
    let lost =
        contents.is_empty() && page.raw().contains_key("Contents") && page.page_stream().is_none();
    lost || contents.iter().any(|part| {
        let length = part.dict().get::<u32>("Length").unwrap_or(0);
        length > EMPTY && part.decoded_data().map_or(true, |bytes| bytes.trim_ascii().is_empty())
    })
}

/// Returns the places of notes in layers that are not shown.
fn hidden_notes(page: &Page<'_>, layers: &Layers<'_>, turned: Affine) -> Vec<Rect> {
    let Some(notes) = page.raw().get::<Array<'_>>("Annots") else { return Vec::new() };
    let notes =
        forms::dictionaries(&notes, layers.xref).filter(|note| layers.hides_annotation(note));
    let places = notes.filter_map(|note| note.get::<PdfRect>("Rect"));
    places.map(|place| turned.transform_rect_bbox(place.to_kurbo())).collect()
}

/// Position of a letter, and its index among the page's letters.
type Placed = ((f64, f64), usize);

/// Collects letters while the page is drawn.
struct LetterCollector<'a, 'l> {
    page: PageLetters,
    /// The page. Letters outside of it are not seen.
    bounds: Rect,
    meanings: Meanings<'a>,
    /// Open marked content, if it has a replacement text.
    open_marked_content: Vec<Option<Replaced>>,
    structure: &'l Structure<'a>,
    /// Replacement texts of the page's structure elements, by the number of their content.
    replacements: HashMap<i32, Rc<Replacement>>,
    /// What has been drawn since the last content with a replacement began.
    drawn: Option<Rect>,
    /// Number of open contents with a replacement.
    open_replacements: usize,
    /// Whether each open marked content is a layer that is not shown.
    is_hidden_layer: Vec<bool>,
    /// Positions of drawn letters, to find letters drawn again for weight. Keyed by letter, direction and
    /// band.
    positions_by_letter: HashMap<(u64, u16, i64), Vec<Placed>>,
    /// Visibility of the letters.
    visibility: Visibility,
    tilings: Tilings,
    /// Number of patterns that are being drawn, each within the one before.
    open_tilings: usize,
    /// Remaining limits of the page.
    budget: PageBudget,
    /// Area of the pictures.
    picture_area: f64,
    /// Positions of the letters that notes and fields draw; `None` while the page's content is drawn.
    annotation_letters: Option<Vec<Point>>,
    layers: &'l Layers<'a>,
    /// Number of open layers that are not shown.
    open_hidden_layers: usize,
    /// Places of notes in layers that are not shown.
    hidden_notes: Vec<Rect>,
    /// Whether the page's content was read to its end.
    has_reached_end: bool,
}

/// Marked content with a replacement text (`ActualText`).
#[derive(Debug)]
struct Replaced {
    words: String,
    /// Index of its first letter.
    first: usize,
    /// Whether the text replaces lines and pictures alone.
    keeps_letters: bool,
}

/// How a letter is drawn.
#[derive(Debug, Clone, Copy)]
struct LetterPaint {
    /// `None` if it is not one color.
    color: Option<[u8; 3]>,
    is_painted: bool,
    /// Whether only its outline is drawn.
    is_stroked: bool,
}

impl<'a> LetterCollector<'a, '_> {
    /// Draws a pattern in an area.
    fn draw_tiling(&mut self, pattern: &TilingPattern<'a>, area: Rect) {
        let seen = self.visibility.clipped(area).intersect(self.bounds);
        if seen.is_zero_area() || self.open_tilings >= MAX_TILINGS {
            return;
        }
        self.open_tilings += 1;
        let is_unseen = usize::from(pattern.opacity < TRANSPARENT);
        self.open_hidden_layers += is_unseen;
        for at in self.tilings.cells(pattern, seen, &self.budget) {
            self.push_clip_path(&ClipPath { path: seen.to_path(0.1), fill: FillRule::NonZero });
            pattern.interpret(self, at, false);
            self.pop_clip();
        }
        self.open_hidden_layers -= is_unseen;
        self.open_tilings -= 1;
    }

    /// Moves letters that are not seen to `hidden`. The words of a scan lie under its picture or have no
    /// color, but count as seen.
    fn move_hidden_letters(&mut self) {
        let sizes = self.page.glyphs.iter().map(|glyph| glyph.size);
        let has_others = sizes.fold(0.0, f64::max) > 2.0 * TINY;
        let is_picture = self.picture_area > MOST_OF_PAGE * self.bounds.area();
        let is_scan =
            is_picture || (self.page.has_picture && self.visibility.has_mostly_unpainted());
        self.page.is_bare_scan = is_picture && !self.visibility.has_unpainted();
        let seen = self.visibility.visible_letters(is_scan, &self.budget);
        let mut seen = seen
            .into_iter()
            .zip(&self.page.glyphs)
            .map(|(seen, glyph)| seen && !(has_others && glyph.size < TINY))
            .collect::<Vec<_>>()
            .into_iter();
        let blank = self.page.glyphs.iter().all(|glyph| glyph.text.trim().is_empty());
        if blank {
            return;
        }
        let glyphs = std::mem::take(&mut self.page.glyphs);
        let (glyphs, hidden): (Vec<_>, Vec<_>) =
            glyphs.into_iter().partition(|_| seen.next().unwrap_or(true));
        self.page.glyphs = glyphs;
        self.page.hidden.extend(hidden);
    }

    fn add_letter(
        &mut self,
        text: Rc<str>,
        at: Affine,
        advance: f64,
        vertical: bool,
        paint: LetterPaint,
    ) {
        let (start, end) = (at * Point::ZERO, at * Point::new(advance, 0.0));
        let (up, em) = (at * Point::new(0.0, EM) - start, at * Point::new(EM, 0.0) - start);
        let size = up.hypot();
        if !size.is_finite() || size < 0.01 || !start.is_finite() {
            return;
        }
        let along = end - start;
        let turn = if vertical { 900 } else { reading_direction(em) };
        let length = if vertical { size } else { along.hypot() };
        let (x, y) = to_reading_frame(start, turn);
        let LetterPaint { color, is_stroked, .. } = paint;
        let is_painted = paint.is_painted && em.hypot() > NARROW * size;
        let place = Rect::from_points(start - up * 0.2, end + up * 0.8);
        let place = if vertical { place.inflate(size, size) } else { place };
        if !place.overlaps(self.bounds) || self.is_in_hidden_layer(start) {
            self.page.hidden.push(Glyph { text, x: (x, x + length), y, size, turn });
            return;
        }
        if let Some(positions) = &mut self.annotation_letters {
            positions.push(start + along * 0.5);
        }
        let middle = start + (along + up * 0.6) * 0.5;
        if !text.trim().is_empty()
            && let Some(first) = self.find_or_record(&text, turn, (x, y), 0.12 * size)
        {
            // The copy drawn last is on top, but an outline leaves its inside free.
            if is_painted {
                let color = color.filter(|_| !is_stroked);
                self.visibility.replace_letter(first, middle, size, color);
            }
            return;
        }
        self.page.glyphs.push(Glyph { text, x: (x, x + length), y, size, turn });
        self.visibility.add_letter(middle, size, color, is_painted);
    }

    /// Returns the replacement text of marked content: its own, or that of its structure element.
    fn replacement_of(&self, properties: &Dict<'_>) -> Option<Replaced> {
        let first = self.page.glyphs.len();
        if let Some(words) = properties.get::<PdfString<'_>>("ActualText") {
            let words = forms::decode_text(words.as_bytes());
            return Some(Replaced { words, first, keeps_letters: false });
        }
        let replacement = self.replacements.get(&properties.get::<i32>("MCID")?)?;
        let words = self.structure.write(replacement);
        Some(Replaced { words, first, keeps_letters: replacement.is_of_figure })
    }

    /// Replaces the letters of marked content, or else what it draws.
    fn replace_letters(&mut self, Replaced { words, first, keeps_letters }: Replaced) {
        let words: String = words.chars().filter(|c| is_text(*c)).collect();
        let Some(last) = self.page.glyphs.get(first..).and_then(<[Glyph]>::last).cloned() else {
            if let Some(place) = self.drawn.take().filter(|_| self.open_hidden_layers == 0) {
                self.add_drawn_words(&words, place);
            }
            return;
        };
        if keeps_letters {
            return;
        }
        self.page.glyphs.truncate(first + 1);
        self.visibility.truncate(first + 1);
        if words.is_empty() {
            self.page.glyphs.truncate(first);
            self.visibility.truncate(first);
        } else if let Some(glyph) = self.page.glyphs.last_mut() {
            glyph.text = words.into();
            if (last.y - glyph.y).abs() < glyph.size * 0.5 {
                glyph.x.1 = glyph.x.1.max(last.x.1);
            }
        }
    }

    /// Adds words that are drawn as lines or as a picture.
    fn add_drawn_words(&mut self, words: &str, place: Rect) {
        if words.trim().is_empty() || !place.overlaps(self.bounds) {
            return;
        }
        let size = place.height().clamp(1.0, MAX_DRAWN_SIZE);
        let y = place.center().y + 0.35 * size;
        self.page.glyphs.push(Glyph {
            text: words.into(),
            x: (place.x0, place.x1),
            y,
            size,
            turn: 0,
        });
        self.visibility.add_letter(place.center(), size, None, true);
    }

    /// Adds to the area that has been drawn.
    fn add_drawn(&mut self, place: Rect) {
        let place = self.visibility.clipped(place);
        if place.is_finite() {
            self.drawn = Some(self.drawn.map_or(place, |drawn| drawn.union(place)));
        }
    }

    /// Whether a letter drawn now is in a layer that is not shown.
    fn is_in_hidden_layer(&self, at: Point) -> bool {
        let is_in_note =
            self.annotation_letters.is_some() && self.hidden_notes.iter().any(|it| it.contains(at));
        self.open_hidden_layers > 0 || is_in_note
    }

    /// Returns the index of the same letter drawn before at this position. If there is none, records this
    /// one.
    fn find_or_record(
        &mut self,
        text: &str,
        turn: u16,
        at: (f64, f64),
        near: f64,
    ) -> Option<usize> {
        // The cast fits: a page is some hundreds of points high.
        let band = |y: f64| (y / BAND).floor() as i64;
        let letter = letter_id(text);
        // Only letters of more than 260 points reach more than three bands.
        let (first, last) = (band(at.1 - near), band(at.1 + near));
        let known = (first..=last).take(3).find_map(|band| {
            // Pages repeat a letter soon after, or layer by layer: only the last letters are checked.
            let mut last =
                self.positions_by_letter.get(&(letter, turn, band))?.iter().rev().take(400);
            let near = |(x, y): (f64, f64)| (x - at.0).abs() < near && (y - at.1).abs() < near;
            last.find(|(place, _)| near(*place)).map(|(_, number)| *number)
        });
        if known.is_none() {
            let place = (at, self.page.glyphs.len());
            self.positions_by_letter.entry((letter, turn, band(at.1))).or_default().push(place);
        }
        known
    }

    /// Adds the value of a form's field, unless the field draws letters itself or the page's content has
    /// the same ones in its place.
    fn add_field_value(&mut self, value: &FieldValue, place: Rect) {
        self.budget.check_time();
        let is_drawn = self.annotation_letters.iter().flatten().any(|at| place.contains(*at));
        let is_comb = value.shape == FieldShape::Comb;
        if is_drawn && !value.is_hidden && !is_comb {
            return;
        }
        let is_in_place = |glyph: &Glyph| {
            glyph.turn == 0
                && place.contains(Point::new(f64::midpoint(glyph.x.0, glyph.x.1), glyph.y))
        };
        let mut printed: Vec<&Glyph> =
            self.page.glyphs.iter().filter(|glyph| is_in_place(glyph)).collect();
        if is_comb {
            printed.sort_by(|a, b| a.x.0.total_cmp(&b.x.0));
        }
        let printed: String = printed.iter().map(|glyph| &*glyph.text).collect();
        let letters = comments::letters(&value.text);
        let is_printed = match value.shape == FieldShape::OffBox {
            true => !printed.trim().is_empty(),
            false => !letters.is_empty() && comments::letters(&printed) == letters,
        };
        if is_printed && is_comb {
            self.page.glyphs.retain(|glyph| !is_in_place(glyph));
        } else if is_printed || (is_drawn && !value.is_hidden) {
            return;
        }
        let lines = u32::try_from(value.text.lines().count()).unwrap_or(u32::MAX);
        let size = (place.height() * 0.8 / f64::from(lines.max(1))).clamp(1.0, 12.0);
        let first = match value.is_from_top {
            true => place.y0 + size,
            false => place.center().y + 0.35 * size,
        };
        for (line, text) in (0_u32..).zip(value.text.lines()) {
            let text: String = text.chars().filter(|c| is_text(*c)).collect();
            if text.trim().is_empty() {
                continue;
            }
            let text = text.into();
            let y = first + f64::from(line) * size * 1.2;
            let x = (place.x0, place.x1.max(place.x0 + size));
            let glyph = Glyph { text, x, y, size, turn: 0 };
            if value.is_hidden {
                self.page.hidden.push(glyph);
            } else {
                self.page.glyphs.push(glyph);
            }
        }
    }
}

/// Returns the direction of reading in tenths of a degree. Near a quarter turn, it is that quarter.
fn reading_direction(along: Vec2) -> u16 {
    let degrees = along.atan2().to_degrees().rem_euclid(360.0);
    let quarter = (degrees / 90.0).round() * 90.0;
    let degrees = if (degrees - quarter).abs() < SLANT { quarter } else { degrees };
    // At most 3,600.
    let tenths = (degrees * 10.0).round() as u16;
    tenths % 3_600
}

/// Returns a number that identifies a letter: the code of a single character, otherwise a hash.
fn letter_id(text: &str) -> u64 {
    let mut letters = text.chars();
    match (letters.next(), letters.next()) {
        (Some(letter), None) => u64::from(u32::from(letter)),
        _ => {
            let mut hasher = DefaultHasher::new();
            text.hash(&mut hasher);
            hasher.finish() | 1 << 63
        }
    }
}

/// Converts a point to the frame of a direction of reading.
pub(super) fn to_reading_frame(at: Point, turn: u16) -> (f64, f64) {
    match turn {
        0 => (at.x, at.y),
        900 => (at.y, -at.x),
        1800 => (-at.x, -at.y),
        2700 => (-at.y, at.x),
        _ => {
            let (sin, cos) = (f64::from(turn) / 10.0).to_radians().sin_cos();
            (at.x * cos + at.y * sin, at.y * cos - at.x * sin)
        }
    }
}

impl<'a> Device<'a> for LetterCollector<'a, '_> {
    fn draw_glyph_run(&mut self, run: &GlyphRun<'_, 'a>, props: DrawProps<'a>, mode: &DrawMode) {
        self.budget.check_time();
        let is_painted = !matches!(mode, DrawMode::Invisible) && !is_transparent(&props);
        let is_stroked = !matches!(mode, DrawMode::Fill(_));
        let paint = LetterPaint { color: color(&props), is_painted, is_stroked };
        let vertical = run.writing_mode() == WritingMode::Vertical;
        // A run has one font, so the meaning and width of a code are looked up once.
        let mut known_codes: Vec<(u32, Option<Rc<str>>, f64)> = Vec::new();
        for glyph in run.glyphs() {
            if self.page.glyphs.len() + self.page.hidden.len() >= MAX_GLYPHS {
                return;
            }
            let code = glyph.char_code();
            let (text, advance) = match known_codes.iter().find(|(known, ..)| *known == code) {
                Some((_, text, advance)) => (text.clone(), *advance),
                None => {
                    let text: Option<Rc<str>> = self.meanings.glyph_text(glyph).map(Rc::from);
                    let advance = match &**glyph {
                        Drawn::Outline(outline) => outline.advance_width(),
                        Drawn::Type3(picture) => picture.advance_width(),
                    };
                    let advance = f64::from(advance.unwrap_or(500.0));
                    if known_codes.len() < MAX_KNOWN_CODES {
                        known_codes.push((code, text.clone(), advance));
                    }
                    (text, advance)
                }
            };
            match text {
                Some(text) => {
                    self.budget.take_text(&text);
                    let at = props.transform * glyph.transform();
                    self.add_letter(text, at, advance, vertical, paint);
                }
                None if is_inked(glyph) => {
                    self.page.unknown += 1;
                    let at = props.transform * glyph.transform();
                    self.add_letter(UNKNOWN_TEXT.into(), at, advance, vertical, paint);
                }
                None => {}
            }
        }
    }

    fn begin_marked_content(&mut self, tag: &[u8], properties: Option<&Dict<'_>>) {
        self.has_reached_end |= tag == content::END;
        let is_off = tag == b"OC" && properties.is_some_and(|layer| self.layers.hides(layer));
        self.open_hidden_layers += usize::from(is_off);
        self.is_hidden_layer.push(is_off);
        let replaced = properties.and_then(|properties| self.replacement_of(properties));
        if replaced.is_some() {
            (self.drawn, self.open_replacements) = (None, self.open_replacements + 1);
        }
        self.open_marked_content.push(replaced);
    }

    fn end_marked_content(&mut self) {
        let is_off = self.is_hidden_layer.pop() == Some(true);
        if let Some(Some(replaced)) = self.open_marked_content.pop() {
            self.open_replacements -= 1;
            self.replace_letters(replaced);
        }
        self.open_hidden_layers -= usize::from(is_off);
    }

    fn draw_image(&mut self, image: Image<'a, '_>, props: ImageDrawProps<'a>) {
        self.budget.take_clip();
        self.page.has_picture = true;
        let place = Rect::new(0.0, 0.0, f64::from(image.width()), f64::from(image.height()));
        let place = props.transform.transform_rect_bbox(place);
        if self.open_replacements > 0 {
            self.add_drawn(place);
        }
        self.picture_area += self.visibility.clipped(place).intersect(self.bounds).area();
        let is_opaque = has_no_holes(&image) && props.soft_mask.is_none();
        self.visibility.add_picture(
            props.transform,
            place,
            is_opaque && props.blend_mode == BlendMode::Normal,
        );
    }

    fn draw_path(&mut self, path: &BezPath, props: DrawProps<'a>, mode: &DrawMode) {
        self.budget.check_time();
        let width = match mode {
            DrawMode::Stroke(stroke) | DrawMode::FillAndStroke(_, stroke) => {
                Some(f64::from(stroke.line_width))
            }
            DrawMode::Fill(_) | DrawMode::Invisible => None,
        };
        self.page.rules.draw(path, props.transform, width);
        if self.open_replacements > 0 {
            self.add_drawn(props.transform.transform_rect_bbox(path.bounding_box()));
        }
        if let DrawMode::Fill(rule) | DrawMode::FillAndStroke(rule, _) = mode {
            let color = color(&props);
            let is_opaque = color.is_some() || is_opaque_gradient(&props);
            if self.visibility.add_fill(path, *rule, props.transform, color, is_opaque) {
                self.budget.take_clip();
            }
            if let Some(pattern) = tiling_of(&props.paint) {
                let place = props.transform.transform_rect_bbox(path.bounding_box());
                self.draw_tiling(pattern, place);
            }
        }
    }

    fn push_clip_path(&mut self, clip: &ClipPath) {
        self.budget.take_clip();
        self.visibility.push_clip(&clip.path);
    }

    fn push_transparency_group(
        &mut self,
        opacity: f32,
        mask: Option<SoftMask<'a>>,
        blend: BlendMode,
    ) {
        let is_opaque = opacity > 0.99 && mask.is_none() && blend == BlendMode::Normal;
        self.visibility.push_group(is_opaque);
    }

    fn pop_clip(&mut self) {
        self.visibility.pop_clip();
    }

    fn pop_transparency_group(&mut self) {
        self.visibility.pop_group();
    }
}

/// Whether nothing shows through a picture.
fn has_no_holes(image: &Image<'_, '_>) -> bool {
    let Image::Raster(image) = image else { return false };
    let entries = image.stream();
    let entries = entries.dict();
    !["SMask", "Mask", "SMaskInData"].iter().any(|key| entries.contains_key(key))
}

/// Whether the paint is a gradient through which nothing shows.
fn is_opaque_gradient(props: &DrawProps<'_>) -> bool {
    let Paint::Pattern(pattern) = &props.paint else { return false };
    matches!(&**pattern, Pattern::Shading(shading) if shading.opacity > 0.99)
        && props.soft_mask.is_none()
        && props.blend_mode == BlendMode::Normal
}

/// Whether the paint is transparent.
fn is_transparent(props: &DrawProps<'_>) -> bool {
    let Paint::Color(color) = &props.paint else { return false };
    let [.., alpha] = color.to_rgba().to_rgba8();
    f32::from(alpha) < 255.0 * TRANSPARENT
}

/// Returns the paint's color if it is opaque.
fn color(props: &DrawProps<'_>) -> Option<[u8; 3]> {
    let Paint::Color(color) = &props.paint else { return None };
    let [red, green, blue, alpha] = color.to_rgba().to_rgba8();
    let is_opaque =
        alpha > 250 && props.soft_mask.is_none() && props.blend_mode == BlendMode::Normal;
    is_opaque.then_some([red, green, blue])
}
