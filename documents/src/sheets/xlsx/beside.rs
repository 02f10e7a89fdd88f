//! Text boxes, comments and charts of a sheet.

use crate::{
    context::Context, left_out::Kind, package::Package, slides, spaces::one_line,
    unreadable::Unreadable,
};

/// Returns text boxes, charts and comments. Counts pictures and unreadable parts.
pub(super) fn beside(
    package: &mut Package<'_>,
    sheet: &str,
    context: &Context<'_>,
) -> Result<Vec<String>, Unreadable> {
    let mut lines = Vec::new();
    let relations = package.relations(sheet).unwrap_or_default();
    let mut parts: Vec<(&str, &str)> =
        relations.values().map(|it| (&*it.kind, &*it.target)).collect();
    parts.sort_unstable();
    // Threaded comments have their own part, which repeats the first comment.
    let is_threaded = parts.iter().any(|(kind, _)| *kind == "threadedComment");
    for (kind, target) in parts {
        if !matches!(kind, "drawing" | "comments" | "threadedComment") {
            continue;
        }
        let tree = match package.xml(target) {
            Ok(Some(tree)) => tree,
            Err(too_large @ Unreadable::TooLarge { .. }) => return Err(too_large),
            _ => {
                context.tally.in_part(Kind::UnreadParts, 1, target);
                continue;
            }
        };
        match kind {
            "drawing" => {
                for shape in tree.all("sp") {
                    let paragraphs = shape.all("p");
                    let words: Vec<String> = paragraphs
                        .iter()
                        .map(|it| it.all("t").iter().map(|it| it.text()).collect::<String>())
                        .filter(|words| !words.trim().is_empty())
                        .collect();
                    lines.extend((!words.is_empty()).then(|| words.join("\n")));
                }
                context.tally.in_part(Kind::Pictures, tree.all("pic").len(), target);
                let parts = package.relations(target)?;
                for frame in tree.all("graphicFrame") {
                    let chart = frame.all("chart").first().and_then(|it| it.reference());
                    let chart = chart.and_then(|id| parts.get(&id));
                    let drawn = match chart {
                        Some(chart) => package.optional(&chart.target)?,
                        None => {
                            context.tally.in_part(Kind::UnreadParts, 1, target);
                            None
                        }
                    };
                    let words = drawn.map(|tree| slides::drawn(&tree, "chart")).unwrap_or_default();
                    lines.extend((!words.trim().is_empty()).then(|| words.trim().to_owned()));
                }
            }
            "comments" if is_threaded => {}
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
