//! PPTX: each slide with its title, text, tables, diagrams and notes, in the order of the
//! presentation.

mod background;
mod comments;
mod shapes;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use background::{LayoutBackground, SlideBackground};
use comments::{comment_texts, read_authors};
use shapes::{placeholder_kind, read_pair, related_parts, shape_frame};

use crate::{
    context::Context,
    drawing::{diagram_text, is_hidden, picture_text, write_paragraphs, write_paragraphs_with},
    embedded::embedded_text,
    format::Format,
    left_out::{Kind, Place, Tally},
    links::ADDRESS,
    package::Package,
    rows::sort_by_rows,
    sheets::chart_text,
    spaces::one_line,
    unreadable::Unreadable,
    xml::{Element, Node},
};

/// Largest distance between the upper edges of shapes in one row: a quarter of an inch, in units of
/// `DrawingML`.
const SAME_ROW: f64 = 228_600.0;

pub(crate) fn extract(bytes: &[u8], context: &Context<'_>) -> Result<String, Unreadable> {
    let damaged = |reason: &str| Unreadable::damaged(Format::Pptx, reason);
    let mut package = Package::open(bytes, Format::Pptx, context)?;
    let main = package.main_part("ppt/presentation.xml")?;
    let show = package.xml(&main)?.ok_or_else(|| damaged("its main part is missing"))?;
    let parts = package.relations(&main)?;
    let authors = read_authors(&mut package, &main)?;
    let (mut slides, mut layouts) = (Vec::new(), BTreeMap::new());
    let mut shown_layouts = BTreeSet::new();
    // Sections, in an extension further down, have lists with the same name.
    let size = show.all("sldSz").first().and_then(|size| read_pair(size, ["cx", "cy"]));
    let list = show.all("presentation").first().and_then(|show| show.child("sldIdLst"));
    let listed = list.into_iter().flat_map(|list| list.elements());
    for (number, slide) in (1..).zip(listed.filter(|slide| &*slide.name == "sldId")) {
        // The attribute `id` without a prefix has another meaning.
        let part = slide.reference().and_then(|id| parts.get(&id));
        let read = part.map(|part| {
            let layout =
                related_parts(&mut package, &part.target, "slideLayout").into_iter().next();
            let layout = layout.unwrap_or_default();
            let layout_background = layouts
                .entry(layout.clone())
                .or_insert_with_key(|it| LayoutBackground::read(&mut package, it));
            let surroundings = SlideContext { number, size, layout_background, authors: &authors };
            let read = slide_text(&mut package, &part.target, surroundings, context)?;
            shown_layouts.extend(read.shows_layout.then_some(layout));
            Ok(read.text)
        });
        match read {
            Some(Ok(text)) => slides.extend(text),
            Some(Err(error @ Unreadable::TooLarge { .. })) => return Err(error),
            // A damaged slide does not affect the others.
            Some(Err(_)) | None => context.tally.add_on_page(Kind::UnreadPages, 1, number),
        }
    }
    if slides.is_empty() && context.tally.has(Kind::UnreadPages) {
        return Err(damaged("none of its slides can be read"));
    }
    layouts.retain(|layout, _| shown_layouts.contains(layout));
    slides.extend(text_of_every_slide(&mut package, &layouts, size, context.tally));
    Ok(slides.join("\n\n"))
}

/// Returns the text that layouts and masters show on each slide, such as a notice or a name; each
/// line once.
fn text_of_every_slide(
    package: &mut Package<'_>,
    layouts: &BTreeMap<String, LayoutBackground>,
    size: Option<(i64, i64)>,
    tally: &Tally,
) -> Option<String> {
    let mut parts: BTreeMap<(usize, String), &LayoutBackground> = BTreeMap::new();
    for (layout, layout_background) in layouts {
        let tree = package.xml(layout).ok().flatten();
        if tree.is_none_or(|tree| shows_master(&tree)) {
            for master in related_parts(package, layout, "slideMaster") {
                parts.entry((0, master)).or_insert(layout_background);
            }
        }
        parts.insert((1, layout.clone()), layout_background);
    }
    let (mut lines, mut seen) = (Vec::new(), HashSet::new());
    for ((_, part), layout_background) in parts {
        let Ok(Some(mut tree)) = package.xml(&part) else { continue };
        remove_placeholders(&mut tree);
        let background = SlideBackground { slide: &tree, layout_background, tally, number: None };
        let reader = ShapeReader { tally, number: None, size, background: Some(&background) };
        let (mut title, mut text) = (String::new(), String::new());
        reader.read_shapes(&tree, &mut title, &mut text);
        let shown = text.lines().map(str::trim_end).filter(|line| !line.is_empty());
        lines.extend(shown.filter(|line| seen.insert(line.to_string())).map(str::to_owned));
    }
    (!lines.is_empty()).then(|| format!("On each slide: {}", lines.join("\n")))
}

/// Removes placeholders, which the text of a slide replaces, and pictures, which are decoration in
/// a layout.
fn remove_placeholders(parent: &mut Element) {
    parent.children.retain_mut(|node| {
        let Node::Element(element) = node else { return true };
        remove_placeholders(element);
        match &*element.name {
            "sp" => placeholder_kind(element).is_none(),
            "pic" | "graphicFrame" => false,
            _ => true,
        }
    });
}

/// Number and surroundings of a slide.
#[derive(Clone, Copy)]
struct SlideContext<'b> {
    number: usize,
    size: Option<(i64, i64)>,
    layout_background: &'b LayoutBackground,
    /// Authors of comments by their ids.
    authors: &'b HashMap<String, String>,
}

/// What is read of a slide.
struct SlideText {
    /// `None` for a hidden slide whose text is dropped.
    text: Option<String>,
    /// Whether it shows the shapes of its layout.
    shows_layout: bool,
}

/// Whether a slide shows the shapes of its layout, or a layout those of its master.
fn shows_master(tree: &Element) -> bool {
    !tree.elements().any(|root| root.is_off("showMasterSp"))
}

/// Reads a slide.
fn slide_text(
    package: &mut Package<'_>,
    name: &str,
    SlideContext { number, size, layout_background, authors }: SlideContext<'_>,
    context: &Context<'_>,
) -> Result<SlideText, Unreadable> {
    let tally = context.tally;
    let mut slide = package
        .xml(name)?
        .ok_or_else(|| Unreadable::damaged(Format::Pptx, format!("slide {number} is missing")))?;
    add_addresses(&mut slide, &package.links(name)?);
    let (mut title, mut text) = (String::new(), String::new());
    let is_off = slide.all("sld").first().is_some_and(|slide| slide.is_off("show"));
    let background =
        SlideBackground { slide: &slide, layout_background, tally, number: Some(number) };
    let reader = ShapeReader {
        tally,
        number: Some(number),
        size,
        background: (!is_off).then_some(&background),
    };
    reader.read_shapes(&slide, &mut title, &mut text);
    if is_off {
        let marked = tally.count_hidden(format!("{title}{text}").trim(), Some(Place::Page(number)));
        let text = (!marked.is_empty()).then_some(marked);
        return Ok(SlideText { text, shows_layout: false });
    }
    package.count_linked_objects(name)?;
    let mut related: Vec<_> = package.relations(name)?.into_values().collect();
    related.sort_by(|a, b| a.target.cmp(&b.target));
    let (mut notes, mut comments) = (String::new(), Vec::new());
    for part in related {
        match part.kind.as_str() {
            // An embedded book, shown by a picture of it.
            "package" | "oleObject" => {
                let book = embedded_text(package, &part, context)?;
                text.push_str(&book);
                text.push_str(if book.is_empty() { "" } else { "\n" });
            }
            "comments" | "comment" => {
                if let Some(tree) = package.optional(&part.target)? {
                    comments.extend(comment_texts(&tree, authors));
                }
            }
            "chart" | "chartEx" => {
                if let Some(chart) = package.optional(&part.target)? {
                    text.push_str(&chart_text(&chart));
                }
            }
            "diagramData" => {
                if let Some(diagram) = package.optional(&part.target)? {
                    text.push_str(&diagram_text(&diagram));
                }
            }
            "notesSlide" => {
                if let Some(page) = package.optional(&part.target)? {
                    for shape in page.all("sp") {
                        if placeholder_kind(shape).as_deref() == Some("body") {
                            write_paragraphs(shape, &mut notes);
                        }
                    }
                }
            }
            _ => {}
        }
    }
    let title = one_line(&title);
    let heading =
        if title.is_empty() { format!("## Slide {number}") } else { format!("## {title}") };
    let mut all = vec![heading];
    all.extend([text.trim().to_owned()].into_iter().filter(|text| !text.is_empty()));
    if !notes.trim().is_empty() {
        all.push(format!("Notes: {}", notes.trim()));
    }
    all.extend(comments);
    Ok(SlideText { text: Some(all.join("\n\n")), shows_layout: shows_master(&slide) })
}

/// Adds the addresses of links to the runs that refer to them.
fn add_addresses(parent: &mut Element, links: &HashMap<String, String>) {
    for node in &mut parent.children {
        let Node::Element(element) = node else { continue };
        let link = element.child("rPr").and_then(|it| it.child("hlinkClick")?.reference());
        match link.and_then(|id| links.get(&id)) {
            Some(address) => {
                element.children.push(Node::Element(Element::with_text(ADDRESS, address)));
            }
            None => add_addresses(element, links),
        }
    }
}

/// Returns the position of a shape: distance from the upper and from the left edge.
fn shape_position(shape: &Element) -> Option<(f64, f64)> {
    let (y, x) = read_pair(shape_frame(shape)?.child("off")?, ["y", "x"])?;
    Some((y as f64, x as f64))
}

/// Sorts shapes by row from above, then from the left. A shape without a position of its own stays
/// with the shape before it.
fn sort_shapes(parent: &Element) -> Vec<&Element> {
    let mut last = (f64::MIN, f64::MIN);
    let placed = parent.elements().map(|element| {
        last = shape_position(element).unwrap_or(last);
        (last, element)
    });
    sort_by_rows(placed.collect(), SAME_ROW)
}

/// Visibility of the shapes of a slide.
struct ShapeReader<'t> {
    tally: &'t Tally,
    /// `None` for a layout or master.
    number: Option<usize>,
    /// Width and height.
    size: Option<(i64, i64)>,
    /// The background against which the visibility of letters is checked.
    background: Option<&'t SlideBackground<'t>>,
}

impl ShapeReader<'_> {
    /// Reads shapes in the order of the slide, including those in groups.
    fn read_shapes(&self, parent: &Element, title: &mut String, text: &mut String) {
        let is_drawn = matches!(&*parent.name, "spTree" | "grpSp");
        let elements = if is_drawn { sort_shapes(parent) } else { parent.elements().collect() };
        for element in elements {
            if is_drawn && self.hides(element, &parent.name) {
                let (mut hidden, all_shapes) =
                    (String::new(), ShapeReader { size: None, background: None, ..*self });
                let mut title = String::new();
                all_shapes.read_shape(element, &mut title, &mut hidden);
                hidden.insert_str(0, &title);
                let marked = self.tally.count_hidden(hidden.trim(), self.number.map(Place::Page));
                text.push_str(&marked);
                continue;
            }
            self.read_shape(element, title, text);
        }
    }

    fn read_shape(&self, element: &Element, title: &mut String, text: &mut String) {
        match &*element.name {
            "sp" => match placeholder_kind(element).as_deref() {
                Some("title" | "ctrTitle") => self.write_words(element, title),
                Some("sldNum") => {}
                // The date of viewing.
                Some("dt") if !element.all("fld").is_empty() => {}
                _ => self.write_words(element, text),
            },
            "tbl" => write_table(element, text, self.tally, self.number.map(Place::Page).as_ref()),
            // `contentPart` is ink.
            "pic" | "contentPart" => self.write_picture(element, text),
            "Fallback" => {}
            _ => self.read_shapes(element, title, text),
        }
    }

    fn write_words(&self, shape: &Element, text: &mut String) {
        let Some(background) = self.background else { return write_paragraphs(shape, text) };
        let visibility = background.visibility_of(shape);
        write_paragraphs_with(shape, &|run, text| visibility.text_or_mark(run, text), text);
    }

    /// Writes the description of a picture.
    fn write_picture(&self, picture: &Element, text: &mut String) {
        if let Some(number) = self.number {
            self.tally.add_on_page(Kind::Pictures, 1, number);
        }
        let description = picture_text(picture);
        if !description.is_empty() {
            text.push_str(&format!("{description}\n"));
        }
    }

    /// Returns whether a shape is hidden or lies outside of the slide.
    fn hides(&self, shape: &Element, parent: &str) -> bool {
        // Groups have their own coordinates.
        let is_beside = || {
            let (width, height) = self.size.filter(|_| parent == "spTree")?;
            let (x, y) = read_pair(shape_frame(shape)?.child("off")?, ["x", "y"])?;
            let (wide, high) = read_pair(shape_frame(shape)?.child("ext")?, ["cx", "cy"])?;
            let is_right_of = x >= width || y >= height;
            Some(is_right_of || x.saturating_add(wide) <= 0 || y.saturating_add(high) <= 0)
        };
        is_hidden(shape) || is_beside().unwrap_or(false)
    }
}

fn write_table(table: &Element, text: &mut String, tally: &Tally, place: Option<&Place>) {
    for row in table.elements().filter(|element| &*element.name == "tr") {
        let cells = row.elements().filter(|element| &*element.name == "tc").map(|cell| {
            let mut lines = String::new();
            write_paragraphs(cell, &mut lines);
            // Another cell covers it.
            if cell.is_on("hMerge") || cell.is_on("vMerge") {
                lines = tally.count_hidden(lines.trim(), place.cloned());
            }
            one_line(&lines)
        });
        let line = cells.collect::<Vec<_>>().join(" | ");
        text.push_str(line.trim_end());
        text.push('\n');
    }
}
