//! The encoding that a page declares.

use encoding_rs::Encoding;

/// Elements whose content has no tags.
const RAW: [&[u8]; 3] = [b"script", b"style", b"title"];

/// Returns the encoding that the XML declaration or the first `<meta>` with one declares. Browsers obey
/// that wherever it stands, but not what a comment, a script or a link says.
pub(super) fn encoding_of(bytes: &[u8]) -> Option<&'static Encoding> {
    let page = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start();
    let of_xml = page.strip_prefix(b"<?xml").and_then(|rest| labelled(tag(rest), "encoding"));
    // A declaration readable as ASCII is not in UTF-16, even if it names that.
    let is_possible = |it: &&'static Encoding| it.output_encoding() == *it;
    if of_xml.is_some() {
        return of_xml.filter(is_possible);
    }
    let mut rest = page;
    while let Some(at) = memchr::memchr(b'<', rest) {
        rest = rest.get(at + 1..).unwrap_or_default();
        let begins = |name: &[u8]| {
            rest.get(..name.len()).is_some_and(|it| it.eq_ignore_ascii_case(name))
                && !rest.get(name.len()).is_some_and(u8::is_ascii_alphanumeric)
        };
        if rest.starts_with(b"!--") {
            rest = behind(rest, b"-->");
        } else if begins(b"meta") {
            let meta = tag(rest);
            if let Some(encoding) = labelled(meta, "charset") {
                return Some(encoding).filter(is_possible);
            }
            // What lies in this tag is not read again.
            rest = rest.get(meta.len()..).unwrap_or_default();
        } else if RAW.iter().any(|name| begins(name)) {
            rest = behind(rest, b"</");
        }
    }
    None
}

/// Returns the start of a tag up to its end.
fn tag(rest: &[u8]) -> &[u8] {
    rest.split(|byte| *byte == b'>').next().unwrap_or_default()
}

fn behind<'b>(bytes: &'b [u8], end: &[u8]) -> &'b [u8] {
    let at = memchr::memmem::find(bytes, end);
    at.and_then(|at| bytes.get(at + end.len()..)).unwrap_or_default()
}

/// Returns the encoding behind a name and an equals sign.
fn labelled(tag: &[u8], name: &str) -> Option<&'static Encoding> {
    let tag = String::from_utf8_lossy(tag).to_ascii_lowercase();
    tag.split(name).skip(1).find_map(|rest| {
        let label = rest.trim_start().strip_prefix('=')?.trim_start();
        let label = label.trim_start_matches(['"', '\'']);
        let label = label.split(['"', '\'', ';', '/', '?']).next()?;
        Encoding::for_label(label.split_whitespace().next()?.as_bytes())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_meta_elements_and_xml_declare_an_encoding() {
        for (page, expected) in [
            ("<meta charset=koi8-r>", Some("KOI8-R")),
            ("<META http-equiv='Content-Type' content='text/html; charset = gb2312'>", Some("GBK")),
            (
                "<?xml version='1.0' encoding=\"windows-1251\"?><meta charset=koi8-r>",
                Some("windows-1251"),
            ),
            ("<script src=a charset=utf-8></script><meta charset=koi8-r>", Some("KOI8-R")),
            (
                "<!-- <meta charset=utf-8> --><link charset=utf-8><meta charset=koi8-r>",
                Some("KOI8-R"),
            ),
            ("<script>'<meta charset=utf-8>'</script><meta charset=koi8-r>", Some("KOI8-R")),
            ("<meta name=charset content=x><meta charset='none'><p>", None),
            ("<meta name=a><meta content=b><meta charset=koi8-r>", Some("KOI8-R")),
            ("<meta charset=utf-16>", None),
            ("<!-- open", None),
        ] {
            let far = format!("{}{page}", " ".repeat(5_000));
            for page in [page, &far] {
                let found = encoding_of(page.as_bytes()).map(Encoding::name);
                assert_eq!(found, expected, "{}", page.trim());
            }
        }
    }

    #[test]
    fn a_page_of_open_tags_is_read_once() {
        let start = std::time::Instant::now();
        assert_eq!(encoding_of("<meta".repeat(20_000).as_bytes()), None);
        assert!(start.elapsed().as_secs() < 2, "took {:?}", start.elapsed());
    }
}
