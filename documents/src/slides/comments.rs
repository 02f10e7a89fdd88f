//! Comments on slides, of both kinds: those of 2007, and those of 2018 with replies.

use std::collections::HashMap;

use super::shapes::related_parts;
use crate::{package::Package, unreadable::Unreadable, xml::Element};

/// Returns the names of the authors of comments by their ids.
pub(super) fn read_authors(
    package: &mut Package<'_>,
    main: &str,
) -> Result<HashMap<String, String>, Unreadable> {
    let mut authors = HashMap::new();
    for (kind, name) in [("commentAuthors", "cmAuthor"), ("authors", "author")] {
        for part in related_parts(package, main, kind) {
            let Some(tree) = package.optional(&part)? else { continue };
            let all = tree.all(name).into_iter();
            authors.extend(all.filter_map(|it| Some((it.attribute("id")?, it.attribute("name")?))));
        }
    }
    Ok(authors)
}

/// Returns the texts of comments, each before its replies.
pub(super) fn comment_texts(tree: &Element, authors: &HashMap<String, String>) -> Vec<String> {
    let mut texts = Vec::new();
    for comment in tree.all("cm") {
        let replies = comment.child("replyLst").into_iter().flat_map(Element::elements);
        for said in std::iter::once(comment).chain(replies) {
            // The body of newer comments has paragraphs.
            let Some(body) = said.child("txBody").or_else(|| said.child("text")) else { continue };
            let words = match body.all("t") {
                texts if texts.is_empty() => body.text(),
                texts => texts.iter().map(|it| it.text()).collect::<Vec<_>>().join(" "),
            };
            let author = said.attribute("authorId").and_then(|id| authors.get(&id));
            let author = author.map(|name| format!(" by {name}")).unwrap_or_default();
            texts.push(format!("[Comment{author}: {}]", words.trim()));
        }
    }
    texts
}
