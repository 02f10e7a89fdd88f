//! Office documents and books.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs, reason = "a test")]

mod common;

use common::{archive, eml, relations};
use common::{epub, odp, ods, odt, package, pptx, xlsb, xlsx};
use tidegate_documents::{Extracted, Format, Limits, Unreadable, extract, left_out::Kind};

fn read(bytes: &[u8], name: &str) -> Result<Extracted, Unreadable> {
    extract(bytes, name, &Limits::default())
}

#[test]
fn what_is_in_them() {
    let sheets = "## Ports\n\nPort | Metres\nBrest | 7.5 | 2026-11-22\n\n## Notes\n\nTRUE";
    let slides = "## Tides\n\nfirst\n- below\n\nNotes: Say it slowly.\n\n## Slide 2\n\nPort | Metres\nBrest | 7";
    let text = "above\n\n## Tides\nHigh  at six,\nlow at noon.[^1]\n1. one\n2. two\n  - deep\nPort |  | Metres\nBrest | 7 | 8\n\n[^1]: at the foot";
    let book = "# Ebb\n\nIt goes.\n\n# Flow\n\nIt comes.";
    for (parts, format, expected) in [
        (xlsx(), Format::Xlsx, sheets),
        (pptx(), Format::Pptx, slides),
        (odt(), Format::Odt, text),
        (ods(), Format::Ods, "## Ports\n\nPort | Metres\nBrest | 7.5 | 2026-11-22"),
        (odp(), Format::Odp, "## Slide 1\n\nTides\n\nNotes: Say it slowly."),
        (epub(), Format::Epub, book),
    ] {
        // The format is detected by the content, because the name has no extension.
        let read = read(&package(&parts), "a").unwrap();
        assert_eq!((read.format, read.text.as_str()), (format, expected));
        assert_eq!(read.left_out.pages(), if format == Format::Epub { vec![2] } else { vec![] });
    }
}

#[test]
fn pictures_and_what_cannot_be_read_within_are_counted() {
    let word = "<w:document><w:body><w:p><w:r><w:t>Scan 1</w:t><w:drawing><wp:inline><wp:docPr id='1'/><a:graphic><pic:pic/></a:graphic></wp:inline></w:drawing></w:r></w:p>\
        <w:p><w:r><w:pict><v:shape><v:imagedata r:id='i'/></v:shape></w:pict></w:r></w:p><w:altChunk r:id='c'/></w:body></w:document>";
    let refers = relations(&[("c", "aFChunk", "chunk.rtf")]);
    let word = archive(&[
        ("[Content_Types].xml", b"<Types/>"),
        ("word/document.xml", word.as_bytes()),
        ("word/_rels/document.xml.rels", refers.as_bytes()),
        ("word/chunk.rtf", b"{\\rtf1 words}"),
    ]);
    let mut slides = pptx();
    slides.retain(|(name, _)| *name != "ppt/slides/slide1.xml");
    slides.push((
        "ppt/slides/slide1.xml",
        "<p:sld><p:cSld><p:spTree><p:pic/><p:pic/></p:spTree></p:cSld></p:sld>".into(),
    ));
    let text: Vec<(&str, Vec<u8>)> = odt()
        .into_iter()
        .map(|(name, part)| {
            let picture = "<text:p><draw:frame><draw:image/></draw:frame></text:p></office:text>";
            let part = String::from_utf8(part).unwrap().replace("</office:text>", picture);
            (name, part.into_bytes())
        })
        .collect();
    let mut book = epub();
    book.push(("OEBPS/lost.xhtml", "<html><body><img src='a.png'/></body></html>".into()));
    let page =
        "Ebb<img src=a><img src=b alt=''><img src=c width=1 height=1><img src=d role=presentation>";
    for (bytes, name, pictures, unread) in [
        (word, "a.docx", 2, 1),
        (package(&slides), "a.pptx", 2, 0),
        (package(&text), "a.odt", 1, 0),
        (package(&book), "a.epub", 1, 0),
        (page.into(), "a.html", 1, 0),
        // Its picture is damaged, but still counted as a picture.
        (eml(), "a.eml", 1, 0),
    ] {
        let left_out = read(&bytes, name).unwrap().left_out;
        let counts = (left_out.count(Kind::Pictures), left_out.count(Kind::UnreadParts));
        assert_eq!(counts, (pictures, unread), "{name}: {left_out:?}");
    }
}

#[test]
fn entities_that_a_part_declares_are_refused_or_counted() {
    let document = |declared: &str, notes: &str| {
        let word = format!(
            "{declared}<w:document><w:body><w:p><w:r><w:t>before &a; after</w:t></w:r></w:p></w:body></w:document>"
        );
        let refers = relations(&[("f", "footnotes", "footnotes.xml")]);
        let parts = archive(&[
            ("[Content_Types].xml", b"<Types/>"),
            ("word/document.xml", word.as_bytes()),
            ("word/_rels/document.xml.rels", refers.as_bytes()),
            ("word/footnotes.xml", notes.as_bytes()),
        ]);
        read(&parts, "a.docx")
    };
    let declared = "<!DOCTYPE d [<!ENTITY a \"text\">]>";
    let refused = document(declared, "<w:footnotes/>").unwrap_err().to_string();
    assert!(refused.contains("declares entities of its own"), "{refused}");
    let without = document("", &format!("{declared}<w:footnotes/>")).unwrap();
    assert_eq!(without.text, "before &a; after");
    assert_eq!(without.left_out.count(Kind::UnreadParts), 1);
}

#[test]
fn rows_that_are_repeated_are_all_read() {
    let repeated = |count: u32| {
        let mut parts = ods();
        let content = parts.iter_mut().find(|(name, _)| *name == "content.xml").unwrap();
        content.1 = format!("<c><office:spreadsheet><table:table table:name='A'><table:table-row table:number-rows-repeated='{count}'><table:table-cell office:value-type='float' office:value='7'/></table:table-row></table:table></office:spreadsheet></c>").into();
        read(&package(&parts), "a.ods")
    };
    let text = repeated(5_000).unwrap().text;
    assert_eq!(text.lines().filter(|line| *line == "7").count(), 5_000);
    assert!(matches!(repeated(u32::MAX), Err(Unreadable::TooLarge { .. })));
}

#[test]
fn many_links_and_white_cells_take_no_time() {
    let cells: String = (1..=60_000)
        .map(|row| format!("<row r='{row}'><c r='A{row}' s='1'/><c r='B{row}'><v>1</v></c></row>"))
        .collect();
    let links: String =
        (1..=60_000).map(|row| format!("<hyperlink ref='B{row}' r:id='l'/>")).collect();
    let mut parts = xlsx();
    parts.retain(|(name, _)| !name.ends_with("sheet1.xml") && !name.ends_with("styles.xml"));
    parts.push(("xl/styles.xml", "<styleSheet><fonts><font/><font><color theme='0'/></font></fonts><cellXfs><xf/><xf fontId='1'/></cellXfs></styleSheet>".into()));
    parts.push((
        "xl/worksheets/sheet1.xml",
        format!(
            "<worksheet><sheetData>{cells}</sheetData><hyperlinks>{links}</hyperlinks></worksheet>"
        )
        .into(),
    ));
    parts.push(("xl/worksheets/_rels/sheet1.xml.rels", b"<Relationships><Relationship Id='l' Type='http://x/hyperlink' Target='https://a.org/t' TargetMode='External'/></Relationships>".to_vec()));
    let start = std::time::Instant::now();
    let text = read(&package(&parts), "a.xlsx").unwrap().text;
    assert_eq!(text.matches("[1](https://a.org/t)").count(), 60_000);
    assert!(start.elapsed() < Limits::default().time, "took {:?}", start.elapsed());
}

#[test]
fn the_older_sheets_and_the_binary_ones() {
    let xls = include_bytes!("fixtures/ports.xls");
    let expected = "## Ports\n\nPort | Metres | Day\nSaint-Malo | 12.5 | 2026-11-22\nGröße | TRUE\n\n## Notes\n\nThe tide turns.";
    let xls = read(xls, "a").unwrap();
    assert_eq!((xls.format, xls.text.as_str()), (Format::Xls, expected));
    let xlsb = read(&package(&xlsb()), "a.xlsb").unwrap();
    let expected = "## Ports\n\nPort | 7.5\nTRUE";
    assert_eq!((xlsb.format, xlsb.text.as_str()), (Format::Xlsx, expected));
}

#[test]
fn a_formula_is_read_where_it_stands() {
    let object = |name: &str| {
        format!("<draw:frame><draw:object xlink:href=\"./{name}\"/><draw:image/></draw:frame>")
    };
    let body = format!(
        "<text:p>Known: {}, {} and {}</text:p>",
        object("Object 1"),
        object("Object 2"),
        "<draw:frame><draw:object><math><mi>a</mi></math></draw:object></draw:frame>",
    );
    let content = format!("<c><office:body><office:text>{body}</office:text></office:body></c>");
    let math = "<math><semantics><mrow><mi>E</mi><mo>=</mo><mi>m</mi><msup><mi>c</mi><mn>2</mn></msup></mrow><annotation encoding=\"StarMath 5.0\">E = m c^2</annotation></semantics></math>";
    let typed = "<math><semantics><mrow/><annotation encoding=\"StarMath 5.0\">x over y</annotation></semantics></math>";
    let parts = vec![
        ("mimetype", "application/vnd.oasis.opendocument.text".into()),
        ("content.xml", content.into()),
        ("Object 1/content.xml", math.into()),
        ("Object 2/content.xml", typed.into()),
    ];
    assert_eq!(read(&package(&parts), "a").unwrap().text, "Known: E = mc², x over y and a");
}

#[test]
fn numbers_and_pictures_of_open_documents() {
    let item = |inner: &str| format!("<text:list-item><text:p>{inner}</text:p></text:list-item>");
    let body = [
        "<text:list text:style-name=\"L1\">",
        &item("one"),
        "<text:list-item text:start-value=\"4\"><text:p>four</text:p><text:list>",
        &item("deep"),
        "</text:list></text:list-item></text:list>",
        "<text:p>Seen<draw:frame><draw:image/><svg:title>t</svg:title><svg:desc>the harbour</svg:desc></draw:frame></text:p>",
    ]
    .concat();
    let styles = "<text:list-style style:name=\"L1\"><text:list-level-style-number text:level=\"1\" style:num-format=\"I\"/><text:list-level-style-number text:level=\"2\" style:num-format=\"a\" text:start-value=\"3\"/></text:list-style>";
    let parts = vec![
        ("mimetype", "application/vnd.oasis.opendocument.text".into()),
        (
            "content.xml",
            format!(
                "<office:document-content><office:automatic-styles>{styles}</office:automatic-styles><office:body><office:text>{body}</office:text></office:body></office:document-content>"
            )
            .into(),
        ),
    ];
    assert_eq!(
        read(&package(&parts), "a.odt").unwrap().text,
        "I. one\nIV. four\n  c. deep\nSeen[Picture: the harbour]"
    );
}

#[test]
fn a_footer_and_its_date_are_text_and_the_day_of_today_is_not() {
    let shape = |kind: &str, inner: &str| {
        format!(
            "<p:sp><p:nvSpPr><p:nvPr><p:ph type=\"{kind}\"/></p:nvPr></p:nvSpPr><p:txBody><a:p>{inner}</a:p></p:txBody></p:sp>"
        )
    };
    let run = |text: &str| format!("<a:r><a:t>{text}</a:t></a:r>");
    let today = "<a:fld type=\"datetime1\"><a:t>22.11.2026</a:t></a:fld>";
    let picture = "<p:pic><p:nvPicPr><p:cNvPr descr=\"the harbour\"/></p:nvPicPr></p:pic>";
    let shapes = [
        shape("ftr", &run("Harbour office")),
        shape("dt", &run("14/09/1995")),
        shape("dt", today),
        shape("sldNum", &run("7")),
        picture.to_owned(),
    ];
    let mut parts = pptx();
    let slide = parts.iter_mut().find(|(name, _)| name.ends_with("slide1.xml")).unwrap();
    slide.1 = format!(
        "<p:sld xmlns:p=\"p\" xmlns:a=\"a\"><p:cSld><p:spTree>{}</p:spTree></p:cSld></p:sld>",
        shapes.concat()
    )
    .into();
    let text = read(&package(&parts), "a.pptx").unwrap().text;
    assert!(text.ends_with("Harbour office\n14/09/1995\n[Picture: the harbour]"), "{text}");
}

#[test]
fn a_cell_far_off_costs_no_more_than_its_place() {
    let mut parts = xlsx();
    let sheet = parts.iter_mut().find(|(name, _)| name.ends_with("sheet2.xml")).unwrap();
    sheet.1 = "<worksheet xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\"><sheetData>\
        <row r=\"1\"><c r=\"A1\"><v>1</v></c><c r=\"C1\"><v>2</v></c></row>\
        <row r=\"1048576\"><c r=\"C1048576\"><v>3</v></c><c r=\"XFD1048576\"><v>4</v></c></row></sheetData></worksheet>"
        .into();
    let text = read(&package(&parts), "a.xlsx").unwrap().text;
    assert!(text.ends_with("## Notes\n\n1 | 2\n | 3 | 4"), "{text}");
}

#[test]
fn a_part_that_is_named_again_and_again_is_no_longer_text() {
    let replace = |parts: &mut common::Parts, name: &str, from: &str, to: &str| {
        let part = parts.iter_mut().find(|(known, _)| known.ends_with(name)).unwrap();
        part.1 = std::str::from_utf8(&part.1).unwrap().replace(from, to).into();
    };
    let mut book = xlsx();
    let sheet = "<sheet name=\"Notes\" sheetId=\"2\" r:id=\"r2\"/>";
    replace(&mut book, "workbook.xml", sheet, &sheet.repeat(1_000));
    let read_book = read(&package(&book), "a.xlsx").unwrap();
    assert_eq!(read_book.text.matches("## Notes").count(), 1);
    assert_eq!(read_book.left_out.count(Kind::UnreadParts), 999);
    let mut book = epub();
    let chapter = "<itemref idref=\"a\"/>";
    replace(&mut book, "book.opf", chapter, &chapter.repeat(1_000));
    let limits = Limits { text_bytes: 100, ..Limits::default() };
    let Err(Unreadable::TooLarge { size, .. }) = extract(&package(&book), "a.epub", &limits) else {
        panic!("a text of 1,000 chapters is read");
    };
    assert!(size < 200, "{size} bytes were made of a text of at most 100");
}

/// A parser of HTML would leave each of these elements open until the end of the chapter.
#[test]
fn elements_of_a_chapter_may_be_closed_at_once() {
    let mut book = epub();
    let chapters =
        ["<title/>", "<script src=\"x.js\"/>", "<style/>", "<iframe src=\"a/>b\"/>", "<textarea/>"];
    for element in chapters {
        let chapter = book.iter_mut().find(|(name, _)| name.ends_with("one.xhtml")).unwrap();
        chapter.1 = format!(
            "<html><head>{element}</head><body><h1>Ebb</h1>It <a id=\"p\"/>goes.</body></html>"
        )
        .into();
        let text = read(&package(&book), "a").unwrap().text;
        assert_eq!(text, "# Ebb\n\nIt goes.\n\n# Flow\n\nIt comes.", "{element}");
    }
    // A page is XHTML by its name, by its declaration, or by its namespace.
    let page =
        |start: &str| format!("{start}<head><title/></head><body><p>The tide</p></body></html>");
    let namespace = "<html xmlns=\"http://www.w3.org/1999/xhtml\">";
    for (start, name) in
        [("<html>", "a.xhtml"), ("<?xml version=\"1.0\"?><html>", "a.html"), (namespace, "a.htm")]
    {
        assert_eq!(read(page(start).as_bytes(), name).unwrap().text, "The tide", "{start}");
    }
}

/// A time of day must not become a date of 1899, or a duration a fraction of days.
#[test]
fn times_and_durations_of_sheets() {
    const MAIN: &str = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
    let cell = |place: &str, style: usize, value: &str| {
        format!("<c r=\"{place}\" s=\"{style}\"><v>{value}</v></c>")
    };
    let rows = [
        "<row r=\"1\">",
        &cell("A1", 0, "0.3541666666666667"),
        &cell("B1", 1, "1.5625"),
        &cell("C1", 2, "46348.5"),
        "</row><row r=\"2\">",
        &cell("A2", 0, "0"),
        &cell("B2", 1, "-0.0625"),
        "</row>",
    ]
    .concat();
    let mut parts = xlsx();
    for (name, part) in &mut parts {
        if name.ends_with("styles.xml") {
            *part = format!(
                "<styleSheet xmlns=\"{MAIN}\"><numFmts><numFmt numFmtId=\"165\" formatCode=\"[h]:mm\"/></numFmts>\
                 <cellXfs><xf numFmtId=\"20\"/><xf numFmtId=\"165\"/><xf numFmtId=\"22\"/></cellXfs></styleSheet>"
            )
            .into();
        } else if name.ends_with("sheet2.xml") {
            *part =
                format!("<worksheet xmlns=\"{MAIN}\"><sheetData>{rows}</sheetData></worksheet>")
                    .into();
        }
    }
    let text = read(&package(&parts), "a.xlsx").unwrap().text;
    let expected = "08:30:00 | 37:30:00 | 2026-11-22 12:00:00\n00:00:00 | -01:30:00";
    assert_eq!(text.split_once("## Notes\n\n").unwrap().1, expected);
}

#[test]
fn times_and_durations_of_open_sheets() {
    let cells = ["PT08H05M00S", "PT30H15M00S", "-PT1H30M", "P1DT2H", "PT00H00M01.6S", "P1M", "PT5"];
    let cells = cells.map(|time| {
        format!("<table:table-cell office:value-type=\"time\" office:time-value=\"{time}\"><text:p>x</text:p></table:table-cell>")
    });
    let moments = ["2026-11-22T10:30:00", "2026-11-22T00:00:00"].map(|date| {
        format!("<table:table-cell office:value-type=\"date\" office:date-value=\"{date}\"><text:p>x</text:p></table:table-cell>")
    });
    let mut parts = ods();
    let content = parts.iter_mut().find(|(name, _)| *name == "content.xml").unwrap();
    content.1 = format!(
        "<office:document-content><office:body><office:spreadsheet><table:table table:name=\"Times\"><table:table-row>{}{}</table:table-row></table:table></office:spreadsheet></office:body></office:document-content>",
        cells.concat(),
        moments.concat()
    )
    .into();
    assert_eq!(
        read(&package(&parts), "a.ods").unwrap().text,
        "## Times\n\n08:05:00 | 30:15:00 | -01:30:00 | 26:00:00 | 00:00:02 | P1M | PT5 | 2026-11-22 10:30:00 | 2026-11-22"
    );
}

#[test]
fn what_is_locked_is_named() {
    let mut book = epub();
    book.push((
        "META-INF/encryption.xml",
        "<encryption><CipherReference URI=\"OEBPS/one.xhtml\"/></encryption>".into(),
    ));
    // One locked chapter costs itself alone.
    let one = read(&package(&book), "a.epub").unwrap();
    assert_eq!((&*one.text, one.left_out.pages()), ("# Flow\n\nIt comes.", vec![1, 2]));
    let all = "<encryption><CipherReference URI=\"OEBPS/one.xhtml\"/><CipherReference URI=\"OEBPS/text/two b.xhtml\"/></encryption>";
    book.last_mut().unwrap().1 = all.into();
    let mut text = odt();
    text.push(("META-INF/manifest.xml", "<m><encryption-data/></m>".into()));
    for (parts, format) in [(book, Format::Epub), (text, Format::Odt)] {
        assert_eq!(read(&package(&parts), "a").unwrap_err(), Unreadable::Encrypted { format });
    }
}
