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
    xml::Element,
};

/// Most items that stand for each other.
const MAX_FALLBACKS: usize = 20;

/// A file of the book.
struct Item {
    name: String,
    /// Its media type.
    kind: String,
    /// Id of the item to be shown if this one cannot be.
    fallback: Option<String>,
}

impl Item {
    fn read(item: &Element, folder: &str) -> Option<Self> {
        let address = item.attribute("href")?;
        let path = percent_decode_str(&address).decode_utf8_lossy();
        Some(Self {
            name: resolve_path(folder, &path),
            kind: item.attribute("media-type").unwrap_or_default().to_ascii_lowercase(),
            fallback: item.attribute("fallback"),
        })
    }

    /// Whether it is a page, or an older book that does not say so correctly.
    fn is_page(&self) -> bool {
        let pages = ["text/", "html", "xml", "svg"];
        self.kind.is_empty() || pages.iter().any(|kind| self.kind.contains(kind))
    }
}

/// Returns the name of the page for an entry of the order of reading: its own item or a fallback of it.
fn page_name(items: &HashMap<String, Item>, id: &str) -> Option<String> {
    let first = items.get(id);
    let chain = std::iter::successors(first, |item| items.get(item.fallback.as_ref()?));
    chain.take(MAX_FALLBACKS).find(|item| item.is_page()).map(|item| item.name.clone())
}

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
    let items: HashMap<String, Item> = book
        .all("item")
        .into_iter()
        .filter_map(|item| Some((item.attribute("id")?, Item::read(item, folder)?)))
        .collect();
    let mut sheets: HashMap<String, String> = HashMap::new();
    for Item { name, .. } in items.values().filter(|item| item.kind == "text/css") {
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
        let name = chapter.attribute("idref").and_then(|id| page_name(&items, &id));
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
                // The list of chapters may name one again and again.
                limits.take_text(text.len())?;
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
