//! Documents made for tests.
#![allow(dead_code, reason = "each test file is a program of its own and uses a part of this")]
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::io::{Cursor, Write};

use zip::{ZipWriter, write::SimpleFileOptions};

/// Makes a PDF of these objects, with a cross-reference table. The first object is the catalogue.
pub(crate) fn pdf_of(objects: &[String], trailer: &str) -> Vec<u8> {
    let mut pdf = b"%PDF-1.7\n".to_vec();
    let mut places = Vec::new();
    for (number, object) in (1..).zip(objects) {
        places.push(pdf.len());
        pdf.extend(format!("{number} 0 obj\n{object}\nendobj\n").bytes());
    }
    let start = pdf.len();
    pdf.extend(format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).bytes());
    for place in places {
        pdf.extend(format!("{place:010} 00000 n \n").bytes());
    }
    pdf.extend(
        format!(
            "trailer\n<< /Size {} /Root 1 0 R {trailer} >>\nstartxref\n{start}\n%%EOF\n",
            objects.len() + 1
        )
        .bytes(),
    );
    pdf
}

/// Makes a PDF with a line of text on each page; an empty line makes a page without text.
pub(crate) fn pdf(pages: &[&str]) -> Vec<u8> {
    let kids: Vec<String> = (0..pages.len()).map(|page| format!("{} 0 R", 4 + 2 * page)).collect();
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        format!("<< /Type /Pages /Count {} /Kids [{}] >>", pages.len(), kids.join(" ")),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
            .to_owned(),
    ];
    for (number, text) in pages.iter().enumerate() {
        let content = if text.is_empty() {
            "0 0 m 9 9 l S".to_owned()
        } else {
            format!("BT /F1 12 Tf 72 720 Td ({text}) Tj ET")
        };
        let resources = "/Resources << /Font << /F1 3 0 R >> >> /MediaBox [0 0 612 792]";
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R {resources} /Contents {} 0 R >>",
            5 + 2 * number
        ));
        objects.push(format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()));
    }
    pdf_of(&objects, "")
}

/// Makes an archive with these files.
pub(crate) fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in files {
        writer.start_file(*name, SimpleFileOptions::default()).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// Makes a DOCX with these paragraphs.
pub(crate) fn docx(paragraphs: &[&str]) -> Vec<u8> {
    let paragraphs: String =
        paragraphs.iter().map(|text| format!("<w:p><w:r><w:t>{text}</w:t></w:r></w:p>")).collect();
    let body = format!(
        "<?xml version=\"1.0\"?><w:document xmlns:w=\"x\"><w:body>{paragraphs}</w:body></w:document>"
    );
    archive(&[("[Content_Types].xml", b"<Types/>"), ("word/document.xml", body.as_bytes())])
}

/// Parts of an archive.
pub(crate) type Parts = Vec<(&'static str, Vec<u8>)>;

/// Makes an archive of parts.
pub(crate) fn package(parts: &Parts) -> Vec<u8> {
    let parts: Vec<(&str, &[u8])> = parts.iter().map(|(name, part)| (*name, &part[..])).collect();
    archive(&parts)
}

/// Makes parts of texts.
pub(crate) fn texts(parts: Vec<(&'static str, String)>) -> Parts {
    parts.into_iter().map(|(name, text)| (name, text.into_bytes())).collect()
}

/// Makes the part with the references of another part: ids, kinds and targets.
pub(crate) fn relations(all: &[(&str, &str, &str)]) -> String {
    let all: String = all
        .iter()
        .map(|(id, kind, target)| {
            format!("<Relationship Id=\"{id}\" Type=\"http://schemas.openxmlformats.org/officeDocument/2006/relationships/{kind}\" Target=\"{target}\"/>")
        })
        .collect();
    format!(
        "<Relationships xmlns=\"http://schemas.openxmlformats.org/package/2006/relationships\">{all}</Relationships>"
    )
}

/// Makes a workbook of two sheets: text, numbers, a date, a formula, an empty row.
pub(crate) fn xlsx() -> Parts {
    const MAIN: &str = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
    const RELATIONS: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    let sheet = |rows: &str| {
        format!("<worksheet xmlns=\"{MAIN}\"><sheetData>{rows}</sheetData></worksheet>")
    };
    texts(vec![
        ("[Content_Types].xml", "<Types/>".to_owned()),
        ("_rels/.rels", relations(&[("r1", "officeDocument", "xl/workbook.xml")])),
        (
            "xl/workbook.xml",
            format!(
                "<workbook xmlns=\"{MAIN}\" xmlns:r=\"{RELATIONS}\"><sheets><sheet name=\"Ports\" sheetId=\"1\" r:id=\"r1\"/><sheet name=\"Notes\" sheetId=\"2\" r:id=\"r2\"/></sheets></workbook>"
            ),
        ),
        (
            "xl/_rels/workbook.xml.rels",
            relations(&[
                ("r1", "worksheet", "worksheets/sheet1.xml"),
                ("r2", "worksheet", "worksheets/sheet2.xml"),
                ("r3", "styles", "styles.xml"),
                ("r4", "sharedStrings", "sharedStrings.xml"),
            ]),
        ),
        (
            "xl/styles.xml",
            format!(
                "<styleSheet xmlns=\"{MAIN}\"><cellXfs><xf numFmtId=\"0\"/><xf numFmtId=\"14\"/></cellXfs></styleSheet>"
            ),
        ),
        (
            "xl/sharedStrings.xml",
            format!(
                "<sst xmlns=\"{MAIN}\"><si><t>Port</t></si><si><r><t>Bre</t></r><r><t>st</t></r></si></sst>"
            ),
        ),
        (
            "xl/worksheets/sheet1.xml",
            sheet(
                "<row r=\"1\"><c r=\"A1\" t=\"s\"><v>0</v></c><c r=\"B1\" t=\"inlineStr\"><is><t>Metres</t></is></c></row><row r=\"3\"><c r=\"A3\" t=\"s\"><v>1</v></c><c r=\"B3\"><f>3+4.5</f><v>7.5</v></c><c r=\"C3\" s=\"1\"><v>46348</v></c></row>",
            ),
        ),
        ("xl/worksheets/sheet2.xml", sheet("<row r=\"1\"><c r=\"A1\" t=\"b\"><v>1</v></c></row>")),
    ])
}

/// Makes two slides, the second in the archive shown first: a title, levels, a table, notes.
pub(crate) fn pptx() -> Parts {
    let p = |text: &str| format!("<a:p><a:r><a:t>{text}</a:t></a:r></a:p>");
    let shape = |kind: &str, text: &str| {
        format!(
            "<p:sp><p:nvSpPr><p:nvPr><p:ph type=\"{kind}\"/></p:nvPr></p:nvSpPr><p:txBody>{text}</p:txBody></p:sp>"
        )
    };
    let slide = |shapes: &str| {
        format!(
            "<p:sld xmlns:p=\"p\" xmlns:a=\"a\"><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></p:sld>"
        )
    };
    let row = |a: &str, b: &str| {
        format!(
            "<a:tr><a:tc><a:txBody>{}</a:txBody></a:tc><a:tc><a:txBody>{}</a:txBody></a:tc></a:tr>",
            p(a),
            p(b)
        )
    };
    texts(vec![
        ("[Content_Types].xml", "<Types/>".to_owned()),
        ("_rels/.rels", relations(&[("r1", "officeDocument", "ppt/presentation.xml")])),
        ("ppt/presentation.xml", "<p:presentation xmlns:p=\"p\" xmlns:r=\"r\"><p:sldIdLst><p:sldId id=\"256\" r:id=\"r2\"/><p:sldId id=\"257\" r:id=\"r1\"/></p:sldIdLst></p:presentation>".to_owned()),
        ("ppt/_rels/presentation.xml.rels", relations(&[("r1", "slide", "slides/slide1.xml"), ("r2", "slide", "slides/slide2.xml")])),
        ("ppt/slides/slide1.xml", slide(&format!("<p:graphicFrame><a:tbl>{}{}</a:tbl></p:graphicFrame>{}", row("Port", "Metres"), row("Brest", "7"), shape("sldNum", &p("2"))))),
        ("ppt/slides/slide2.xml", slide(&format!("{}{}", shape("body", &format!("{}<a:p><a:pPr lvl=\"1\"/><a:r><a:t>below</a:t></a:r></a:p>", p("first"))), shape("title", &p("Tides"))))),
        ("ppt/slides/_rels/slide2.xml.rels", relations(&[("r1", "notesSlide", "../notesSlides/notesSlide1.xml")])),
        ("ppt/notesSlides/notesSlide1.xml", format!("<p:notes xmlns:p=\"p\" xmlns:a=\"a\">{}</p:notes>", shape("body", &p("Say it slowly.")))),
    ])
}

/// Makes a text with a heading, lists, a table, a note, a comment and hidden text.
pub(crate) fn odt() -> Parts {
    let p = |text: &str| format!("<text:p>{text}</text:p>");
    let item = |inner: &str| format!("<text:list-item>{inner}</text:list-item>");
    let cell = |inner: &str| format!("<table:table-cell>{}</table:table-cell>", p(inner));
    let body = [
        "<text:h text:outline-level=\"2\">Tides</text:h>".to_owned(),
        p("High<text:s text:c=\"2\"/>at <text:span>six</text:span>,<text:line-break/>\n   low at noon.<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>at the foot</text:p></text:note-body></text:note>"),
        format!("<text:list text:style-name=\"L1\">{}{}</text:list>", item(&p("one")), item(&format!("{}<text:list>{}</text:list>", p("two"), item(&p("deep"))))),
        format!("<table:table><table:table-header-rows><table:table-row>{}<table:covered-table-cell/>{}</table:table-row></table:table-header-rows><table:table-row>{}{}{}</table:table-row></table:table>", cell("Port"), cell("Metres"), cell("Brest"), cell("7"), cell("8")),
        "<text:tracked-changes><text:p>gone</text:p></text:tracked-changes>".to_owned(),
    ]
    .concat();
    texts(vec![
        ("mimetype", "application/vnd.oasis.opendocument.text".to_owned()),
        (
            "content.xml",
            format!(
                "<office:document-content><office:automatic-styles><text:list-style style:name=\"L1\"><text:list-level-style-number/><text:list-level-style-bullet/></text:list-style></office:automatic-styles><office:body><office:text>{body}</office:text></office:body></office:document-content>"
            ),
        ),
        (
            "styles.xml",
            format!(
                "<office:document-styles><office:master-styles><style:master-page><style:header>{}</style:header></style:master-page></office:master-styles></office:document-styles>",
                p("above")
            ),
        ),
    ])
}

/// Makes a sheet of `OpenDocument`: text, a number, a date, an empty row.
pub(crate) fn ods() -> Parts {
    let text = |text: &str| {
        format!(
            "<table:table-cell office:value-type=\"string\"><text:p>{text}</text:p></table:table-cell>"
        )
    };
    let rows = [
        format!("<table:table-row>{}{}</table:table-row>", text("Port"), text("Metres")),
        "<table:table-row table:number-rows-repeated=\"2\"><table:table-cell table:number-columns-repeated=\"3\"/></table:table-row>".to_owned(),
        format!("<table:table-row>{}<table:table-cell office:value-type=\"float\" office:value=\"7.5\"><text:p>7.5</text:p></table:table-cell><table:table-cell office:value-type=\"date\" office:date-value=\"2026-11-22\"><text:p>22.11.26</text:p></table:table-cell></table:table-row>", text("Brest")),
    ];
    texts(vec![
        ("mimetype", "application/vnd.oasis.opendocument.spreadsheet".to_owned()),
        ("META-INF/manifest.xml", "<manifest:manifest/>".to_owned()),
        (
            "content.xml",
            format!(
                "<office:document-content><office:body><office:spreadsheet><table:table table:name=\"Ports\">{}</table:table></office:spreadsheet></office:body></office:document-content>",
                rows.concat()
            ),
        ),
    ])
}

/// Makes a slide of `OpenDocument`, with notes.
pub(crate) fn odp() -> Parts {
    let boxed = |text: &str| {
        format!("<draw:frame><draw:text-box><text:p>{text}</text:p></draw:text-box></draw:frame>")
    };
    texts(vec![
        ("mimetype", "application/vnd.oasis.opendocument.presentation".to_owned()),
        (
            "content.xml",
            format!(
                "<office:document-content><office:body><office:presentation><draw:page>{}<presentation:notes>{}</presentation:notes></draw:page></office:presentation></office:body></office:document-content>",
                boxed("Tides"),
                boxed("Say it slowly.")
            ),
        ),
    ])
}

/// Makes a workbook of binary parts ([MS-XLSB]): records of a type, a length, and content.
pub(crate) fn xlsb() -> Parts {
    let wide = |text: &str| {
        let units: Vec<u16> = text.encode_utf16().collect();
        let letters = units.iter().flat_map(|unit| unit.to_le_bytes());
        (units.len() as u32).to_le_bytes().into_iter().chain(letters).collect::<Vec<u8>>()
    };
    let record = |kind: u16, content: &[u8]| {
        let kind = if kind < 0x80 {
            vec![kind as u8]
        } else {
            vec![kind as u8 & 0x7f | 0x80, (kind >> 7) as u8]
        };
        [&kind, &[content.len() as u8][..], content].concat()
    };
    let numbers =
        |all: &[u32]| all.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
    let cell = |kind: u16, column: u32, value: &[u8]| {
        record(kind, &[&numbers(&[column, 0])[..], value].concat())
    };
    let row = |number: u32| record(0, &[&numbers(&[number])[..], &[0; 13]].concat());
    let book = [
        record(0x83, &[]),
        record(0x8f, &[]),
        record(0x9c, &[numbers(&[0, 1]), wide("r1"), wide("Ports")].concat()),
        record(0x90, &[]),
        record(0x9d, &[0; 26]),
        record(0x84, &[]),
    ];
    let sheet = [
        record(0x81, &[]),
        record(0x94, &numbers(&[0, 1, 0, 1])),
        record(0x91, &[]),
        row(0),
        cell(0x06, 0, &wide("Port")),
        cell(0x05, 1, &7.5_f64.to_le_bytes()),
        row(1),
        cell(0x04, 0, &[1]),
        record(0x92, &[]),
        record(0x82, &[]),
    ];
    vec![
        ("[Content_Types].xml", b"<Types/>".to_vec()),
        ("xl/workbook.bin", book.concat()),
        (
            "xl/_rels/workbook.bin.rels",
            relations(&[("r1", "worksheet", "worksheets/sheet1.bin")]).into_bytes(),
        ),
        ("xl/worksheets/sheet1.bin", sheet.concat()),
    ]
}

/// Makes a compound file with up to three empty streams of these names.
pub(crate) fn compound(names: &[&str]) -> Vec<u8> {
    const NONE: u32 = u32::MAX;
    const END: u32 = 0xffff_fffe;
    let put = |bytes: &mut Vec<u8>, at: usize, number: u32| {
        bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
    };
    let mut header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1".to_vec();
    header.resize(76, 0);
    header.resize(512, 0xff);
    // The size of sectors, the number and start of the directory, the bound of small streams, their
    // table, further sectors of the main table, its first sector.
    for (at, number) in [(30, 9), (44, 1), (48, 1), (56, 4_096), (60, END), (68, END), (76, 0)] {
        put(&mut header, at, number);
    }
    let mut table = vec![0xff; 512];
    put(&mut table, 0, 0xffff_fffd);
    put(&mut table, 4, END);
    let entry = |name: &str, right: u32, child: u32| {
        let mut entry: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
        entry.resize(128, 0);
        entry[64] = 2 * (name.len() as u8 + 1);
        entry[66] = if name == "Root Entry" { 5 } else { 2 };
        for (at, number) in [(68, NONE), (72, right), (76, child), (116, END)] {
            put(&mut entry, at, number);
        }
        entry
    };
    let last = names.len() as u32;
    let mut directory = entry("Root Entry", NONE, 1);
    for (at, name) in (1..).zip(names) {
        directory.extend(entry(name, if at == last { NONE } else { at + 1 }, NONE));
    }
    directory.resize(512, 0);
    [header, table, directory].concat()
}

/// Makes a book of two chapters; the name of one contains a space.
pub(crate) fn epub() -> Parts {
    texts(vec![
        ("mimetype", "application/epub+zip".to_owned()),
        ("META-INF/container.xml", "<container><rootfiles><rootfile full-path=\"OEBPS/book.opf\"/></rootfiles></container>".to_owned()),
        ("OEBPS/book.opf", "<package><manifest><item id=\"b\" href=\"text/two%20b.xhtml\"/><item id=\"a\" href=\"one.xhtml\"/><item id=\"c\" href=\"lost.xhtml\"/></manifest><spine><itemref idref=\"a\"/><itemref idref=\"c\"/><itemref idref=\"b\"/></spine></package>".to_owned()),
        ("OEBPS/text/two b.xhtml", "<html><body><h1>Flow</h1><p>It comes.</p></body></html>".to_owned()),
        ("OEBPS/one.xhtml", "<html><head><title>no</title></head><body><h1>Ebb</h1><p>It goes.</p></body></html>".to_owned()),
    ])
}

/// Makes a message with text in an older encoding, an HTML part, a sheet, a picture and a message.
pub(crate) fn eml() -> Vec<u8> {
    let sheet = {
        use std::fmt::Write as _;
        // Base64 without a crate.
        const SIGNS: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut text = String::new();
        for (place, bytes) in package(&xlsx()).chunks(3).enumerate() {
            let word = bytes.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte))
                << (8 * (3 - bytes.len()));
            for sign in 0..4 {
                let letter = SIGNS[(word >> (18 - 6 * sign)) as usize & 63] as char;
                write!(text, "{}", if sign > bytes.len() { '=' } else { letter }).unwrap();
            }
            if place % 19 == 18 {
                text.push_str("\r\n");
            }
        }
        text
    };
    format!(
        "From: Ada <ada@example.org>\r\nTo: bob@example.org, Cy <cy@example.org>\r\nDate: Sun, 22 Nov 2026 10:00:00 +0100\r\nSubject: =?iso-8859-1?Q?Gr=F6=DFe?=\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n\
         --b\r\nContent-Type: text/plain; charset=shift_jis\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nThe tide =92=AA turns.\r\n\
         --b\r\nContent-Type: application/octet-stream\r\nContent-Disposition: attachment; filename=ports.xlsx\r\nContent-Transfer-Encoding: base64\r\n\r\n{sheet}\r\n\
         --b\r\nContent-Type: image/png\r\nContent-Disposition: attachment; filename=p.png\r\nContent-Transfer-Encoding: base64\r\n\r\niVBORw0KGgo=\r\n\
         --b\r\nContent-Type: message/rfc822\r\n\r\nFrom: cy@example.org\r\nSubject: Inner\r\nContent-Type: text/html\r\n\r\n<p>Only <b>HTML</b></p>\r\n--b--\r\n"
    )
    .into_bytes()
}

/// Pseudorandom numbers from a seed, the same on each run.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end.max(1)
    }

    /// Changes, removes, doubles or cuts off bytes.
    pub(crate) fn damage(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..=self.below(8) {
            let at = self.below(bytes.len());
            let end = (at + self.below(40)).min(bytes.len());
            match self.below(5) {
                0 => bytes.truncate(at.max(1)),
                1 => drop(bytes.drain(at..end)),
                2 => {
                    let copy = bytes[at..end].to_vec();
                    bytes.splice(at..at, copy);
                }
                _ => {
                    let byte = self.below(256) as u8;
                    if let Some(place) = bytes.get_mut(at) {
                        *place = byte;
                    }
                }
            }
            if bytes.is_empty() {
                return;
            }
        }
    }
}
