//! Links: the address follows the text of the link, as in Markdown.

/// Longest address in bytes that is written. Longer ones are meant for machines.
const MAX_ADDRESS: usize = 200;

/// Element that a reader inserts for the address of a link that is stored in another part.
pub(crate) const ADDRESS: &str = "tidegate-address";

/// Returns an address with the name of a place in the page that it leads to.
pub(crate) fn with_fragment(address: &str, fragment: Option<&str>) -> String {
    match fragment.filter(|fragment| !fragment.is_empty() && !address.contains('#')) {
        Some(fragment) => format!("{address}#{fragment}"),
        None => address.to_owned(),
    }
}

/// An open link out of the document.
#[derive(Debug)]
pub(crate) struct Link {
    address: String,
    /// Position of the link's text; `None` before its first word.
    begins: Option<usize>,
}

impl Link {
    /// Opens a link. Returns `None` for an address within the same document or site, and for one
    /// that is too long.
    pub(crate) fn to(address: &str) -> Option<Self> {
        let address = address.trim();
        let leads_out = ["http://", "https://", "mailto:"].iter().any(|scheme| {
            address.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
        });
        (leads_out && address.len() <= MAX_ADDRESS)
            .then(|| Self { address: address.to_owned(), begins: None })
    }

    /// Begins the text of the link, at its first word.
    pub(crate) fn begin(&mut self, text: &mut String) {
        if self.begins.is_none() {
            self.begins = Some(text.len());
            text.push('[');
        }
    }

    /// Closes the link behind its last word. The address is not repeated if it is the text.
    pub(crate) fn end(self, text: &mut String) {
        let Some(begins) = self.begins else { return };
        let words = text.get(begins + 1..).unwrap_or_default().trim();
        let bare = |address: &str| {
            let address = address.trim_end_matches('/');
            address.split_once("://").map_or(address, |(_, rest)| rest).to_owned()
        };
        let address = self.address.strip_prefix("mailto:").unwrap_or(&self.address);
        if words.is_empty() || bare(words) == bare(address) {
            text.remove(begins);
        } else if words.contains('\n') || words.starts_with('#') {
            text.remove(begins);
            text.push_str(&format!(" ({})", self.address));
        } else {
            text.push_str(&format!("]({})", self.address));
        }
    }
}
