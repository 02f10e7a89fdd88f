//! PPTX: each slide with its title, text, tables, diagrams and notes, in the order of showing.

use crate::{
    context::Context,
    format::Format,
    left_out::{Kind, Tally},
    math,
    package::Package,
    symbols::Fonts,
    unreadable::Unreadable,
    xml::{Element, Node},
};

pub(crate) fn extract(bytes: &[u8], context: &Context<'_>) -> Result<String, Unreadable> {
    let limits = context.limits;
    let damaged = |reason: &str| Unreadable::damaged(Format::Pptx, reason);
    let mut package = Package::open(bytes, Format::Pptx, limits)?;
    let main = package.main("ppt/presentation.xml")?;
    let show = package.xml(&main)?.ok_or_else(|| damaged("its main part is missing"))?;
    let parts = package.relations(&main)?;
    let mut slides = Vec::new();
    // Sections, in an extension further down, have lists of the same name that refer to the slides.
    let list = show.all("presentation").first().and_then(|show| show.child("sldIdLst"));
    let listed = list.into_iter().flat_map(|list| list.elements());
    for (number, slide) in (1..).zip(listed.filter(|slide| &*slide.name == "sldId")) {
        // Beside it there is an attribute `id` of another kind.
        let part = slide.reference().and_then(|id| parts.get(&id));
        match part.map(|part| slide_text(&mut package, &part.target, number, context.tally)) {
            Some(Ok(text)) => slides.extend(text),
            Some(Err(error @ Unreadable::TooLarge { .. })) => return Err(error),
            // It costs itself alone.
            Some(Err(_)) | None => context.tally.on_page(Kind::UnreadPages, 1, number),
        }
    }
    if slides.is_empty() && context.tally.has(Kind::UnreadPages) {
        return Err(damaged("none of its slides can be read"));
    }
    Ok(slides.join("\n\n"))
}

/// `None` of a slide that is not shown.
fn slide_text(
    package: &mut Package<'_>,
    name: &str,
    number: usize,
    tally: &Tally,
) -> Result<Option<String>, Unreadable> {
    let slide = package
        .xml(name)?
        .ok_or_else(|| Unreadable::damaged(Format::Pptx, format!("slide {number} is missing")))?;
    let (mut title, mut text) = (String::new(), String::new());
    shapes(&slide, &mut title, &mut text);
    let shows = slide.all("sld").first().and_then(|slide| slide.attribute("show"));
    if matches!(shows.as_deref(), Some("0" | "false")) {
        tally.on_page(Kind::HiddenText, title.chars().count() + text.chars().count(), number);
        return Ok(None);
    }
    let mut related: Vec<_> = package.relations(name)?.into_values().collect();
    related.sort_by(|a, b| a.target.cmp(&b.target));
    let mut notes = String::new();
    for part in related {
        match part.kind.as_str() {
            "chart" | "diagramData" => {
                if let Some(drawing) = package.xml(&part.target)? {
                    text.push_str(&drawn(&drawing, &part.kind));
                }
            }
            "notesSlide" => {
                if let Some(page) = package.xml(&part.target)? {
                    for shape in page.all("sp") {
                        if placeholder(shape).as_deref() == Some("body") {
                            paragraphs(shape, &mut notes);
                        }
                    }
                }
            }
            _ => {}
        }
    }
    let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
    let heading =
        if title.is_empty() { format!("## Slide {number}") } else { format!("## {title}") };
    let mut all = vec![heading];
    all.extend([text.trim().to_owned()].into_iter().filter(|text| !text.is_empty()));
    if !notes.trim().is_empty() {
        all.push(format!("Notes: {}", notes.trim()));
    }
    Ok(Some(all.join("\n\n")))
}

/// The text of a diagram or a chart; of a chart, its figures.
pub(crate) fn drawn(drawing: &Element, kind: &str) -> String {
    let mut text = String::new();
    paragraphs(drawing, &mut text);
    if kind == "chart" {
        series(drawing, &mut text);
    }
    text
}

/// Shapes in the order of the slide, groups included.
fn shapes(parent: &Element, title: &mut String, text: &mut String) {
    for element in parent.elements() {
        match &*element.name {
            "sp" => match placeholder(element).as_deref() {
                Some("title" | "ctrTitle") => paragraphs(element, title),
                Some("sldNum") => {}
                // The day on which it is looked at.
                Some("dt") if !element.all("fld").is_empty() => {}
                _ => paragraphs(element, text),
            },
            "tbl" => table(element, text),
            "pic" => picture(element, text),
            "Fallback" => {}
            _ => shapes(element, title, text),
        }
    }
}

/// What a picture is said to show.
fn picture(picture: &Element, text: &mut String) {
    let shown = picture.all("cNvPr").first().and_then(|it| it.attribute("descr"));
    if let Some(shown) = shown.filter(|shown| !shown.trim().is_empty()) {
        text.push_str(&format!("[Picture: {}]\n", shown.trim()));
    }
}

fn placeholder(shape: &Element) -> Option<String> {
    let place = *shape.all("ph").first()?;
    Some(place.attribute("type").unwrap_or_default())
}

fn paragraphs(parent: &Element, text: &mut String) {
    for paragraph in parent.all("p") {
        let mut line = String::new();
        words(paragraph, &mut line);
        if line.trim().is_empty() {
            continue;
        }
        let level = paragraph
            .child("pPr")
            .and_then(|properties| properties.attribute("lvl")?.parse::<usize>().ok())
            .unwrap_or(0)
            .min(8);
        if level > 0 {
            text.push_str(&format!("{}- ", "  ".repeat(level - 1)));
        }
        text.push_str(line.trim());
        text.push('\n');
    }
}

fn words(parent: &Element, line: &mut String) {
    for node in &parent.children {
        let Node::Element(element) = node else { continue };
        match &*element.name {
            "t" => {
                let text = fonts(parent).read(element.text());
                let raised = is_raised(parent).then(|| math::exponent(&text)).flatten();
                line.push_str(&raised.unwrap_or(text));
            }
            "br" => line.push('\n'),
            "tab" => line.push('\t'),
            "pPr" | "rPr" | "Fallback" => {}
            _ => words(element, line),
        }
    }
}

/// The fonts that a run names; letters are of the first one.
fn fonts(run: &Element) -> Fonts {
    let Some(properties) = run.child("rPr") else { return Fonts::default() };
    let named = |kind: &str| properties.child(kind)?.attribute("typeface");
    let others: Vec<String> = ["sym", "cs", "ea"].into_iter().filter_map(named).collect();
    Fonts::named(named("latin").as_deref(), &others)
}

fn is_raised(run: &Element) -> bool {
    let height = run.child("rPr").and_then(|properties| properties.attribute("baseline"));
    height.and_then(|height| height.parse().ok()).is_some_and(|height: i64| height > 0)
}

fn table(table: &Element, text: &mut String) {
    for row in table.elements().filter(|element| &*element.name == "tr") {
        let cells = row.elements().filter(|element| &*element.name == "tc").map(|cell| {
            let mut lines = String::new();
            paragraphs(cell, &mut lines);
            lines.split_whitespace().collect::<Vec<_>>().join(" ")
        });
        let line = cells.collect::<Vec<_>>().join(" | ");
        text.push_str(line.trim_end());
        text.push('\n');
    }
}

/// A chart's rows of figures, as they were when it was drawn.
fn series(chart: &Element, text: &mut String) {
    for row in chart.all("ser") {
        let values = |name: &str| {
            let parts = row.child(name).map(|part| part.all("v")).unwrap_or_default();
            parts.iter().map(|value| value.text()).collect::<Vec<_>>()
        };
        let (name, names, figures) = (values("tx"), values("cat"), values("val"));
        let figures = figures.iter().enumerate().map(|(place, figure)| match names.get(place) {
            Some(name) => format!("{name}: {figure}"),
            None => figure.clone(),
        });
        let line = name.into_iter().chain(figures).collect::<Vec<_>>().join(" | ");
        text.push_str(&line);
        text.push('\n');
    }
}
