//! Text boxes, controls, comments and charts of a sheet.

use crate::{
    context::Context,
    drawing,
    embedded::embedded_text,
    left_out::{Kind, Place, Tally},
    package::{Package, Relation},
    sheets::chart_text,
    spaces::one_line,
    unreadable::Unreadable,
    xml::Element,
};

/// Returns text boxes, charts and comments. Counts pictures and unreadable parts.
pub(in crate::sheets) fn floating_texts(
    package: &mut Package<'_>,
    sheet: &str,
    context: &Context<'_>,
) -> Result<Vec<String>, Unreadable> {
    let mut lines = Vec::new();
    let relations = package.relations(sheet).unwrap_or_default();
    package.count_linked_objects(sheet)?;
    let mut parts: Vec<&Relation> = relations.values().collect();
    parts.sort_unstable_by_key(|it| (&it.kind, &it.target));
    // Threaded comments have their own part, which repeats the first comment.
    let is_threaded = parts.iter().any(|it| it.kind == "threadedComment");
    let has_forms = parts.iter().any(|it| it.kind == "vmlDrawing");
    for relation in parts {
        let (kind, target) = (&*relation.kind, &*relation.target);
        if matches!(kind, "package" | "oleObject") {
            let text = embedded_text(package, relation, context)?;
            lines.extend((!text.is_empty()).then_some(text));
        }
        if !matches!(kind, "drawing" | "vmlDrawing" | "comments" | "threadedComment")
            || kind == "comments" && is_threaded
        {
            continue;
        }
        let tree = match package.xml(target) {
            Ok(Some(tree)) => tree,
            Err(too_large @ Unreadable::TooLarge { .. }) => return Err(too_large),
            _ => {
                context.tally.add_in_part(Kind::UnreadParts, 1, target);
                continue;
            }
        };
        match kind {
            "drawing" => {
                let mut drawing = Drawing { has_forms, ..Drawing::default() };
                drawing.read_shapes(&tree, target, context.tally);
                lines.append(&mut drawing.lines);
                context.tally.add_in_part(Kind::Pictures, drawing.pictures, target);
                let parts = package.relations(target)?;
                for frame in drawing.frames {
                    let part = |name: &str, id: fn(&Element) -> Option<String>| {
                        frame.all(name).first().and_then(|it| parts.get(&id(it)?))
                    };
                    let chart = part("chart", Element::reference);
                    let diagram = part("relIds", |ids| ids.attribute("dm"));
                    let words = match (chart, diagram) {
                        (Some(chart), _) => {
                            package.optional(&chart.target)?.as_ref().map(chart_text)
                        }
                        (_, Some(diagram)) => {
                            package.optional(&diagram.target)?.as_ref().map(drawing::diagram_text)
                        }
                        _ => {
                            context.tally.add_in_part(Kind::UnreadParts, 1, target);
                            None
                        }
                    };
                    let words = words.unwrap_or_default();
                    lines.extend((!words.trim().is_empty()).then(|| words.trim().to_owned()));
                }
            }
            "vmlDrawing" => lines.extend(tree.all("shape").into_iter().filter_map(form_control)),
            _ => {
                let name = if kind == "comments" { "comment" } else { "threadedComment" };
                for comment in tree.all(name) {
                    let words: String = comment
                        .all(if kind == "comments" { "t" } else { "text" })
                        .iter()
                        .map(|it| it.text())
                        .collect();
                    let place = comment.attribute("ref").unwrap_or_default();
                    let words = one_line(&words);
                    lines.push(format!("[Comment on {place}: {words}]"));
                }
            }
        }
    }
    Ok(lines)
}

/// The content of a drawing.
#[derive(Default)]
struct Drawing<'d> {
    /// Whether forms are read from their own part. The drawing repeats their labels.
    has_forms: bool,
    lines: Vec<String>,
    frames: Vec<&'d Element>,
    pictures: usize,
}

impl<'d> Drawing<'d> {
    /// Reads the shapes below an element; of alternatives, the first.
    fn read_shapes(&mut self, parent: &'d Element, target: &str, tally: &Tally) {
        for element in parent.elements() {
            match &*element.name {
                "sp" | "grpSp" | "pic" | "graphicFrame" if drawing::is_hidden(element) => {
                    let repeats =
                        self.has_forms && !element.all_with_extensions("compatExt").is_empty();
                    let mut words = String::new();
                    drawing::write_paragraphs(element, &mut words);
                    let place = Some(Place::part(target));
                    let marked = if repeats {
                        String::new()
                    } else {
                        tally.count_hidden(words.trim(), place)
                    };
                    self.lines.extend((!marked.is_empty()).then_some(marked));
                }
                "sp" => {
                    let mut words = String::new();
                    drawing::write_paragraphs(element, &mut words);
                    let words = words.trim();
                    self.lines.extend((!words.is_empty()).then(|| words.to_owned()));
                }
                // `contentPart` is ink.
                "pic" | "contentPart" => {
                    self.pictures += 1;
                    let words = drawing::picture_text(element);
                    self.lines.extend((!words.is_empty()).then_some(words));
                }
                "graphicFrame" => self.frames.push(element),
                // Another way to draw the first choice.
                "Fallback"
                    if parent.child("Choice").is_some_and(|it| it.elements().next().is_some()) => {}
                _ => self.read_shapes(element, target, tally),
            }
        }
    }
}

/// Returns the label of a control on the sheet, and the state of a box or a button.
fn form_control(shape: &Element) -> Option<String> {
    let data = shape.child("ClientData")?;
    let kind = data.attribute("ObjectType")?;
    let is_checked = data.child("Checked").is_some_and(|it| it.text().trim() != "0");
    let state = match &*kind {
        "Checkbox" | "Radio" if is_checked => "[x] ",
        "Checkbox" | "Radio" => "[ ] ",
        "Button" | "Label" | "GBox" | "EditBox" | "Dialog" => "",
        _ => return None,
    };
    let label = one_line(&shape.child("textbox").map(Element::text).unwrap_or_default());
    Some(format!("{state}{label}")).filter(|line| !line.trim().is_empty())
}
