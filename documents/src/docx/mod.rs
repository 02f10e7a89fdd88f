//! DOCX: the main part with its headers, footers, notes and comments.

mod auto_numbers;
mod body;
mod embedded;
mod fields;
mod lists;
mod look;
mod notes;
mod settings;
mod styles;

use crate::{
    context::Context, format::Format, package::Package, unreadable::Unreadable, xml::Element,
};
use body::Body;
use embedded::Embedded;
use notes::{NoteKind, Notes};

/// Usual name of the main part; the archive may name another.
const MAIN: &str = "word/document.xml";

/// Kind of headers and footers that no page has, in place of their own.
const NOT_SHOWN: &str = "header or footer that is not shown";

/// Returns the text of all parts that a reader of the document sees.
pub(crate) fn extract(bytes: &[u8], context: &Context<'_>) -> Result<String, Unreadable> {
    let mut package = Package::open(bytes, Format::Docx, context)?;
    let mut embedded = Embedded { context, read: 0 };
    let main = package.main_part(MAIN)?;
    let mut document = package
        .xml(&main)?
        .ok_or_else(|| Unreadable::damaged(Format::Docx, "its main part is missing"))?;
    embedded.fill_references(&mut package, &main, &mut document)?;
    let relations = package.relations(&main)?;
    let settings = relations.values().find(|relation| relation.kind == "settings");
    let settings = match settings {
        Some(settings) => package.optional(&settings.target)?,
        None => None,
    };
    let shown = settings::shown_headers_and_footers(&document, settings.as_ref());
    let mut parts: Vec<(String, Option<usize>, String)> = relations
        .into_iter()
        .map(|(id, relation)| {
            let is_edge = matches!(&*relation.kind, "header" | "footer");
            let place = shown.as_ref().and_then(|shown| shown.iter().position(|it| *it == id));
            let is_shown = !is_edge || shown.is_none() || place.is_some();
            let kind = if is_shown { relation.kind } else { NOT_SHOWN.to_owned() };
            (kind, place, relation.target)
        })
        .collect();
    parts.sort();
    let mut part = |kind: &str| -> Result<Vec<Element>, Unreadable> {
        let mut trees = Vec::new();
        for (_, _, name) in parts.iter().filter(|(known, ..)| known == kind) {
            let Some(mut tree) = package.optional(name)? else { continue };
            embedded.fill_references(&mut package, name, &mut tree)?;
            trees.push(tree);
        }
        Ok(trees)
    };
    let styles = styles::Styles::read(part("styles")?.first());
    let lists = lists::Lists::read(part("numbering")?.first());
    let paper = look::page_background(&document);
    let notes = Notes::numbered_by(&document, settings.as_ref());
    let mut body = Body::new(&styles, lists, notes, paper, context.tally);

    let headers = headers_or_footers(&mut body, &part("header")?);
    let text = body.read_text(&document);
    let mut all: Vec<String> = headers.into_iter().chain([text]).collect();
    for (part_of, element, kind) in
        [("footnotes", "footnote", NoteKind::Foot), ("endnotes", "endnote", NoteKind::End)]
    {
        let mut notes = Vec::new();
        for note in part(part_of)?.iter().flat_map(|tree| tree.all(element)) {
            // Separators have a type other than `normal`.
            if note.attribute("type").is_some_and(|kind| kind != "normal") {
                continue;
            }
            let text = body.read_text(note);
            match body.notes.place_and_mark(kind, &note.attribute("id").unwrap_or_default()) {
                _ if text.is_empty() => {}
                // Its reference was deleted.
                None => notes.push((usize::MAX, context.tally.count_hidden(&text, None))),
                // The text begins with its own mark.
                Some((place, None)) => notes.push((place, text)),
                Some((place, Some(mark))) => notes.push((place, format!("{mark}: {text}"))),
            }
        }
        notes.sort_by_key(|(place, _)| *place);
        all.extend(notes.into_iter().map(|(_, note)| note));
    }
    for comment in part("comments")?.iter().flat_map(|tree| tree.all("comment")) {
        let text = body.read_text(comment);
        if !text.is_empty() {
            let author = comment.attribute("author").unwrap_or_default();
            all.push(format!("[Comment by {author}: {text}]"));
        }
    }
    all.extend(headers_or_footers(&mut body, &part("footer")?));
    for edge in headers_or_footers(&mut body, &part(NOT_SHOWN)?) {
        all.push(context.tally.count_hidden(&edge, None));
    }
    all.retain(|part| !part.trim().is_empty());
    Ok(all.join("\n\n"))
}

/// Returns the texts of headers or footers, each once.
fn headers_or_footers(body: &mut Body<'_>, parts: &[Element]) -> Vec<String> {
    let mut texts = Vec::new();
    for part in parts {
        let text = body.read_text(part);
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{limits::Limits, xml};

    pub(super) fn read(parts: &[(&str, &str)]) -> Result<String, Unreadable> {
        use std::io::Write;
        let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        for (name, text) in parts {
            archive.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
            archive.write_all(text.as_bytes()).unwrap();
        }
        let bytes = archive.finish().unwrap().into_inner();
        crate::extract(&bytes, "a.docx", &Limits::default()).map(|read| read.text)
    }

    fn body(xml: &str) -> String {
        read(&[(MAIN, &format!("<w:document><w:body>{xml}</w:body></w:document>"))]).unwrap()
    }

    pub(super) fn relation(id: &str, kind: &str, target: &str) -> String {
        format!("<Relationship Id='{id}' Type='http://x/{kind}' Target='{target}'/>")
    }

    #[test]
    fn paragraphs_tables_and_signs() {
        let text = body(
            "<w:p><w:r><w:t>Ebb &amp; flow&#33;</w:t><w:tab/><w:t xml:space='preserve'> on</w:t></w:r></w:p>\
             <w:p><w:del><w:r><w:t>gone</w:t></w:r></w:del><w:ins><w:r><w:t>Second &lol;</w:t></w:r></w:ins></w:p>\
             <w:p><w:r><w:t>twenty</w:t><w:noBreakHyphen/><w:t>one</w:t></w:r><w:r><w:rPr><w:vanish/></w:rPr><w:t>unseen</w:t></w:r></w:p>\
             <w:tbl><w:tr><w:tc><w:p><w:r><w:t>a</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>b</w:t></w:r></w:p></w:tc></w:tr></w:tbl>",
        );
        assert_eq!(text, "Ebb & flow!\t on\nSecond &lol;\ntwenty-one\na | b");
    }

    #[test]
    fn cells_that_are_merged_or_hold_tables() {
        let p = |text: &str| format!("<w:p><w:r><w:t>{text}</w:t></w:r></w:p>");
        let cell = |inner: &str| format!("<w:tc>{inner}</w:tc>");
        let wide = format!("<w:tc><w:tcPr><w:gridSpan w:val='2'/></w:tcPr>{}</w:tc>", p("wide"));
        let inner = format!(
            "<w:tbl><w:tr>{}{}</w:tr><w:tr>{}{}</w:tr></w:tbl>",
            cell(&p("1")),
            cell(&p("2")),
            cell(&p("3")),
            cell(&p("4"))
        );
        let table = format!(
            "<w:tbl><w:tr>{wide}{}</w:tr><w:tr>{}<w:sdt><w:sdtContent>{}</w:sdtContent></w:sdt>{}</w:tr></w:tbl>",
            cell(&p("last")),
            cell(&(p("two") + &p("lines"))),
            cell(&inner),
            cell(&p("")),
        );
        assert_eq!(body(&table), "wide |  | last\ntwo lines | 1 | 2; 3 | 4 |");
    }

    #[test]
    fn pictures_are_what_they_are_said_to_show() {
        let text = body(
            "<w:p><w:r><w:t>See </w:t><w:drawing><wp:inline><wp:docPr id='1' name='Picture 1' descr='A harbour at ebb'/>\
             <a:graphic><pic:cNvPr descr='A harbour at ebb'/></a:graphic></wp:inline></w:drawing><w:t>.</w:t></w:r></w:p>\
             <w:p><w:r><w:drawing><wp:inline><wp:docPr id='2' name='Picture 2'/></wp:inline></w:drawing></w:r></w:p>",
        );
        assert_eq!(text, "See [Picture: A harbour at ebb].");
    }

    #[test]
    fn signs_of_symbol_fonts_are_what_they_show() {
        let sign =
            |font: &str, code: &str| format!("<w:r><w:sym w:font='{font}' w:char='{code}'/></w:r>");
        let run = |fonts: &str, text: &str| {
            format!("<w:r><w:rPr><w:rFonts {fonts}/></w:rPr><w:t>{text}</w:t></w:r>")
        };
        let text = body(&format!(
            "<w:p><w:r><w:t>5 </w:t></w:r>{}<w:r><w:t>g </w:t></w:r>{}{}{}{}</w:p><w:p>{}{}{}</w:p><w:p>{}{}{}</w:p>",
            sign("Symbol", "F06D"),
            sign("Symbol", "F0B3"),
            sign("Symbol", "B1"),
            sign("Wingdings", "F0FE"),
            sign("Wingdings 2", "F0A3"),
            run("w:ascii='Symbol' w:hAnsi='Symbol'", "&#xF061;&#xF062; c"),
            run("w:hAnsi='Wingdings'", "&#xF0FC;"),
            run("w:ascii='Arial'", "d"),
            // A code without a known meaning, one of an unknown font, and a plain letter.
            sign("Wingdings", "F0FF"),
            sign("Sonata", "F026"),
            sign("Arial", "2264"),
        ));
        assert_eq!(text, "5 µg ≥±☑☐\nαβ χ✓d\n\u{fffd}\u{fffd}≤");
    }

    #[test]
    fn boxes_and_menus_of_forms_say_what_is_chosen() {
        let field = |inner: &str, after: &str| {
            format!(
                "<w:p><w:r><w:fldChar w:fldCharType='begin'><w:ffData><w:name w:val='x'/>{inner}</w:ffData></w:fldChar></w:r>\
                 <w:r><w:instrText>FORM</w:instrText></w:r><w:r><w:fldChar w:fldCharType='end'/></w:r><w:r><w:t>{after}</w:t></w:r></w:p>"
            )
        };
        let entries = "<w:listEntry w:val='ebb'/><w:listEntry w:val='flow'/>";
        let text = body(
            &[
                field("<w:checkBox><w:default w:val='1'/></w:checkBox>", "yes"),
                field(
                    "<w:checkBox><w:default w:val='1'/><w:checked w:val='0'/></w:checkBox>",
                    "no",
                ),
                field("<w:checkBox><w:checked/></w:checkBox>", "yes"),
                field(&format!("<w:ddList><w:result w:val='1'/>{entries}</w:ddList>"), "."),
                field(&format!("<w:ddList>{entries}</w:ddList>"), "."),
                field("<w:ddList><w:result w:val='9'/></w:ddList>", "."),
                field("<w:textInput><w:default w:val='typed'/></w:textInput>", "words"),
            ]
            .concat(),
        );
        assert_eq!(text, "☒yes\n☐no\n☒yes\nflow.\nebb.\n.\nwords");
    }

    #[test]
    fn a_text_box_is_read_once() {
        let boxed = "<w:txbxContent><w:p><w:r><w:t>boxed</w:t></w:r></w:p></w:txbxContent>";
        let text = body(&format!(
            "<w:p><w:r><w:t>before</w:t></w:r><w:r><mc:AlternateContent><mc:Choice Requires='wps'><w:drawing>{boxed}</w:drawing></mc:Choice>\
             <mc:Fallback><w:pict>{boxed}</w:pict></mc:Fallback></mc:AlternateContent></w:r><w:r><w:t> after</w:t></w:r></w:p>"
        ));
        assert_eq!(text, "before after\nboxed");
    }

    #[test]
    fn headings_lists_and_notes_of_a_main_part_of_another_name() {
        let item = |level: usize, text: &str| {
            format!(
                "<w:p><w:pPr><w:numPr><w:ilvl w:val='{level}'/><w:numId w:val='7'/></w:numPr></w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"
            )
        };
        let level = |at: usize, format: &str, text: &str| {
            format!(
                "<w:lvl w:ilvl='{at}'><w:start w:val='1'/><w:numFmt w:val='{format}'/><w:lvlText w:val='{text}'/></w:lvl>"
            )
        };
        let note = |text: &str| format!("<w:p><w:r><w:t>{text}</w:t></w:r></w:p>");
        let text = read(&[
            ("[Content_Types].xml", "<Types><Override ContentType='wordprocessingml.document.main'/></Types>"),
            ("_rels/.rels", &format!("<Relationships>{}</Relationships>", relation("r", "officeDocument", "/word/document2.xml"))),
            ("word/_rels/document2.xml.rels", &format!(
                "<Relationships>{}{}{}{}{}{}</Relationships>",
                relation("a", "styles", "styles.xml"), relation("b", "numbering", "numbering.xml"),
                relation("c", "footnotes", "footnotes.xml"), relation("d", "endnotes", "endnotes.xml"),
                relation("e", "header", "header1.xml"), relation("f", "comments", "comments.xml"),
            )),
            ("word/styles.xml", "<w:styles><w:style w:styleId='b2'><w:name w:val='heading 2'/></w:style><w:style w:styleId='own'><w:basedOn w:val='b2'/></w:style></w:styles>"),
            ("word/numbering.xml", &format!(
                "<w:numbering><w:abstractNum w:abstractNumId='3'>{}{}</w:abstractNum><w:num w:numId='7'><w:abstractNumId w:val='3'/></w:num>\
                 <w:num w:numId='8'><w:abstractNumId w:val='3'/><w:lvlOverride w:ilvl='0'><w:startOverride w:val='1'/></w:lvlOverride></w:num></w:numbering>",
                level(0, "decimal", "%1."), level(1, "lowerLetter", "%1.%2)"),
            )),
            ("word/footnotes.xml", &format!("<w:footnotes><w:footnote w:type='separator' w:id='0'>{}</w:footnote><w:footnote w:id='20'>{}</w:footnote><w:footnote w:id='2'>{}</w:footnote></w:footnotes>", note("---"), note("later"), note("at the foot"))),
            ("word/endnotes.xml", &format!("<w:endnotes><w:endnote w:id='1'>{}</w:endnote></w:endnotes>", note("at the end"))),
            ("word/header1.xml", &format!("<w:hdr>{}</w:hdr>", note("above"))),
            ("word/comments.xml", &format!("<w:comments><w:comment w:author='Ada'>{}</w:comment></w:comments>", note("why?"))),
            ("word/document2.xml", &format!(
                "<w:document><w:body><w:p><w:pPr><w:pStyle w:val='own'/></w:pPr><w:r><w:t>Tides</w:t></w:r></w:p>{}{}{}{}{}{}\
                 <w:p><w:r><w:t>Seen</w:t><w:footnoteReference w:id='2'/><w:endnoteReference w:id='1'/><w:footnoteReference w:id='20'/></w:r></w:p></w:body></w:document>",
                item(0, "ebb"), item(1, "slow"), item(1, "fast"), item(0, "flow"),
                item(0, "anew").replace("'7'", "'8'"), item(0, "goes on").replace("'7'", "'8'"),
            )),
        ])
        .unwrap();
        assert_eq!(
            text,
            "above\n\n## Tides\n1. ebb\n  1.a) slow\n  1.b) fast\n2. flow\n1. anew\n2. goes on\nSeen[^1][^e1][^2]\n\n\
             [^1]: at the foot\n\n[^2]: later\n\n[^e1]: at the end\n\n[Comment by Ada: why?]"
        );
    }

    #[test]
    fn what_was_changed_is_read_as_accepted() {
        let p = |properties: &str, inner: &str| {
            format!("<w:p><w:pPr>{properties}</w:pPr>{inner}</w:p>")
        };
        let run = |properties: &str, text: &str| {
            format!("<w:r><w:rPr>{properties}</w:rPr><w:t xml:space='preserve'>{text}</w:t></w:r>")
        };
        let deleted = "<w:rPr><w:del w:id='1'/></w:rPr>";
        let cell = |more: &str, text: &str| format!("<w:tc>{more}{}</w:tc>", p("", &run("", text)));
        let table = format!(
            "<w:tbl><w:tr>{}{}</w:tr><w:tr><w:trPr><w:del/></w:trPr>{}</w:tr></w:tbl>",
            cell("", "kept"),
            cell("<w:tcPr><w:cellDel/></w:tcPr>", "gone"),
            cell("", "gone"),
        );
        let text = body(
            &[
                p(deleted, &run("", "High ")),
                p(deleted, &run("", "and ")),
                p("", &run("", "low.")),
                table,
                p(
                    "",
                    &(run("<w:strike/>", "EUR ")
                        + &run("<w:dstrike/>", "5")
                        + &run("<w:strike w:val='0'/>", " 6")),
                ),
                p(deleted, &run("", "last")),
            ]
            .concat(),
        );
        assert_eq!(text, "High and low.\nkept\n~~EUR 5~~ 6\nlast");
    }

    #[test]
    fn links_and_legal_numbers_are_shown() {
        let item = |level: usize, text: &str| {
            format!(
                "<w:p><w:pPr><w:numPr><w:ilvl w:val='{level}'/><w:numId w:val='1'/></w:numPr></w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"
            )
        };
        let link = "<w:p><w:hyperlink r:id='l'><w:r><w:t>the </w:t></w:r><w:r><w:t>terms</w:t></w:r></w:hyperlink><w:hyperlink w:anchor='x'><w:r><w:t> below</w:t></w:r></w:hyperlink></w:p>";
        let relations = format!(
            "<Relationships>{}<Relationship Id='l' Type='http://x/hyperlink' Target='https://a.org/t' TargetMode='External'/></Relationships>",
            relation("n", "numbering", "numbering.xml"),
        );
        let level = |at: usize, format: &str, text: &str, more: &str| {
            format!(
                "<w:lvl w:ilvl='{at}'><w:start w:val='4'/><w:numFmt w:val='{format}'/>{more}<w:lvlText w:val='{text}'/></w:lvl>"
            )
        };
        let numbering = format!(
            "<w:numbering><w:abstractNum w:abstractNumId='0'>{}{}{}</w:abstractNum><w:num w:numId='1'><w:abstractNumId w:val='0'/></w:num></w:numbering>",
            level(0, "upperRoman", "%1.", ""),
            level(1, "decimalZero", "%1.%2", "<w:isLgl/>"),
            level(2, "chineseCounting", "%3、", ""),
        );
        let text = read(&[
            ("word/_rels/document.xml.rels", &relations),
            ("word/numbering.xml", &numbering),
            (
                MAIN,
                &format!(
                    "<w:document><w:body>{link}{}{}{}</w:body></w:document>",
                    item(0, "a"),
                    item(1, "b"),
                    item(2, "c")
                ),
            ),
        ])
        .unwrap();
        assert_eq!(text, "[the terms](https://a.org/t) below\nIV. a\n  4.04 b\n    四、 c");
    }

    #[test]
    fn nesting_has_an_end() {
        let deep = format!("{}{}", "<a>".repeat(1_000), "</a>".repeat(1_000));
        assert!(
            xml::parse(deep.as_bytes(), Format::Docx).unwrap_err().to_string().contains("nested")
        );
    }
}
