//! EPUB: the chapters of a book in the order of reading.

use std::collections::HashMap;

use percent_encoding::percent_decode_str;

use crate::{
    context::Context,
    format::Format,
    html,
    left_out::Kind,
    package::{Package, resolve_path},
    unreadable::Unreadable,
};

/// Extracts the text of all chapters.
pub(crate) fn extract(bytes: &[u8], context: &Context<'_>) -> Result<String, Unreadable> {
    let Context { limits, deadline, tally, .. } = *context;
    let damaged = |reason: &str| Unreadable::damaged(Format::Epub, reason);
    let mut package = Package::open(bytes, Format::Epub, context)?;
    let locked: Vec<String> = package
        .xml("META-INF/encryption.xml")?
        .map(|list| list.all("CipherReference").iter().filter_map(|r| r.attribute("URI")).collect())
        .unwrap_or_default();
    let container = package
        .xml("META-INF/container.xml")?
        .ok_or_else(|| damaged("its container.xml is missing"))?;
    let main = container
        .all("rootfile")
        .first()
        .and_then(|file| file.attribute("full-path"))
        .ok_or_else(|| damaged("its container names no book"))?;
    let book = package.xml(&main)?.ok_or_else(|| damaged("its list of chapters is missing"))?;
    let folder = main.rsplit_once('/').map_or("", |(folder, _)| folder);
    let names: HashMap<String, String> = book
        .all("item")
        .into_iter()
        .filter_map(|item| {
            let name = resolve_path(
                folder,
                &percent_decode_str(&item.attribute("href")?).decode_utf8_lossy(),
            );
            Some((item.attribute("id")?, name))
        })
        .collect();
    let mut sheets: HashMap<String, String> = HashMap::new();
    for item in book.all("item") {
        let is_sheet = item.attribute("media-type").is_some_and(|kind| kind == "text/css");
        let name = item.attribute("id").and_then(|id| names.get(&id)).filter(|_| is_sheet);
        let Some(name) = name else { continue };
        match package.read(name) {
            Err(error @ Unreadable::TooLarge { .. }) => return Err(error),
            Ok(Some(bytes)) => {
                sheets.insert(name.clone(), String::from_utf8_lossy(&bytes).into_owned());
            }
            _ => {}
        }
    }
    let (mut text, mut missing, mut encrypted) = (String::new(), 0, 0);
    for (number, chapter) in (1..).zip(book.all("itemref")) {
        if deadline.has_passed() {
            return Err(Unreadable::TooSlow(limits.time));
        }
        let name = chapter.attribute("idref").and_then(|id| names.get(&id).cloned());
        let is_locked = name.as_ref().is_some_and(|name| locked.contains(name));
        encrypted += usize::from(is_locked);
        let name = name.filter(|_| !is_locked);
        let folder = name.as_deref().and_then(|name| name.rsplit_once('/')).map_or("", |it| it.0);
        let linked = |address: &str| {
            let path = percent_decode_str(address).decode_utf8_lossy();
            sheets.get(&resolve_path(folder, &path)).cloned()
        };
        let bytes = match name.as_ref().map(|name| package.read(name)) {
            Some(Err(error @ Unreadable::TooLarge { .. })) => return Err(error),
            Some(Ok(Some(bytes))) => html::extract_xhtml(&bytes, tally, &linked).ok(),
            _ => None,
        };
        match bytes {
            Some(words) if !words.is_empty() => {
                text.push_str(if text.is_empty() { "" } else { "\n\n" });
                text.push_str(&words);
            }
            Some(_) => {}
            None => {
                missing += 1;
                tally.add_on_page(Kind::UnreadPages, 1, number);
            }
        }
    }
    if text.is_empty() && encrypted > 0 {
        return Err(Unreadable::Encrypted { format: Format::Epub });
    }
    if text.is_empty() && missing > 0 {
        return Err(damaged("none of its chapters can be read"));
    }
    Ok(text)
}
