//! Text as shown: labels, formats and order that the file does not contain as text.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs, reason = "a test")]

mod common;

use common::{Parts, ods, package, pptx, relations, texts, xlsb, xlsx};
use tidegate_documents::{Limits, extract, left_out::Kind};

fn read(parts: &Parts, name: &str) -> (String, Vec<(Kind, u64)>) {
    let read = extract(&package(parts), name, &Limits::default()).unwrap();
    (read.text, read.left_out.iter().map(|(kind, count)| (kind, count.count)).collect())
}

/// Replaces or adds parts.
fn with(mut parts: Parts, others: Vec<(&'static str, String)>) -> Parts {
    for (name, text) in texts(others) {
        parts.retain(|(known, _)| *known != name);
        parts.push((name, text));
    }
    parts
}

#[test]
fn sheets_show_formats_and_hide_rows() {
    let styles = "<styleSheet><numFmts><numFmt numFmtId=\"200\" formatCode=\"0.0&quot; m&quot;\"/></numFmts>\
        <cellXfs><xf numFmtId=\"0\"/><xf numFmtId=\"10\"/><xf numFmtId=\"200\"/></cellXfs></styleSheet>";
    let sheet = "<worksheet><cols><col min=\"4\" max=\"9\" hidden=\"1\"/></cols><sheetData>\
        <row><c s=\"1\"><v>0.125</v></c><c s=\"2\"><v>7</v></c><c t=\"e\"><v>#N/A</v></c><c><v>9</v></c></row>\
        <row hidden=\"1\"><c t=\"inlineStr\"><is><t>not this</t></is></c></row>\
        <row r=\"7\"><c r=\"B7\"><f>A1*2</f></c><c r=\"A7\" t=\"str\"><f>T()</f><v>a_x000A_b</v></c></row></sheetData></worksheet>";
    let parts = with(
        xlsx(),
        vec![
            ("xl/styles.xml", styles.to_owned()),
            ("xl/worksheets/sheet1.xml", sheet.to_owned()),
            ("xl/worksheets/sheet2.xml", "<worksheet><sheetData><row>".to_owned()),
            (
                "xl/worksheets/_rels/sheet1.xml.rels",
                relations(&[
                    ("r1", "comments", "../comments1.xml"),
                    ("r2", "drawing", "../drawings/drawing1.xml"),
                ]),
            ),
            (
                "xl/comments1.xml",
                "<comments><comment ref=\"B7\"><text><r><t>why</t></r><r><t> twice?</t></r></text></comment></comments>".to_owned(),
            ),
            (
                "xl/drawings/drawing1.xml",
                "<wsDr><sp><txBody><p><r><t>Boxed</t></r></p></txBody></sp><pic/></wsDr>".to_owned(),
            ),
        ],
    );
    let (text, left_out) = read(&parts, "a.xlsx");
    assert_eq!(
        text,
        "## Ports\n\n12.50% | 7.0 m | #N/A\na b | =A1*2\n\n[Comment on B7: why twice?]\n\nBoxed"
    );
    assert_eq!(
        left_out,
        [
            (Kind::HiddenText, 8),
            (Kind::UnreadParts, 1),
            (Kind::Pictures, 1),
            (Kind::FormulasWithoutValue, 1)
        ]
    );
}

#[test]
fn open_sheets_are_read_as_they_are_shown() {
    let cell = |kind: &str, text: &str| {
        format!("<table:table-cell {kind}><text:p>{text}</text:p></table:table-cell>")
    };
    let content = format!(
        "<c><office:automatic-styles><style:style style:name=\"off\"><style:table-properties table:display=\"false\"/></style:style></office:automatic-styles>\
         <office:spreadsheet><table:table table:name=\"A\"><table:table-row-group><table:table-row>{}{}</table:table-row></table:table-row-group>\
         <table:table-row table:visibility=\"filter\">{}</table:table-row></table:table>\
         <table:table table:name=\"B\" table:style-name=\"off\"><table:table-row>{}</table:table-row></table:table></office:spreadsheet></c>",
        cell("office:value-type=\"percentage\" office:value=\"0.5\"", "50 %"),
        cell(
            "office:value-type=\"currency\" office:value=\"3\" table:number-columns-repeated=\"2\"",
            "€ 3.-"
        ),
        cell("", "gone"),
        cell("", "off"),
    );
    let (text, left_out) = read(&with(ods(), vec![("content.xml", content)]), "a.ods");
    assert_eq!(text, "## A\n\n50 % | € 3.- | € 3.-");
    assert_eq!(left_out, [(Kind::HiddenText, 7)]);
}

#[test]
fn open_sheets_have_shapes_charts_and_covered_cells() {
    let p = |text: &str| format!("<text:p>{text}</text:p>");
    let content = format!(
        "<c><office:spreadsheet><table:table table:name=\"A\"><table:shapes><draw:ellipse>{}</draw:ellipse><draw:frame><draw:image/></draw:frame></table:shapes>\
         <table:table-column/><table:table-column table:visibility=\"collapse\"/><table:table-column/>\
         <table:table-row><table:table-cell table:number-columns-repeated=\"3\">{}</table:table-cell></table:table-row>\
         <table:table-row><table:table-cell>{}<draw:frame><draw:object xlink:href=\"./Object 1\"/></draw:frame><draw:connector>{}</draw:connector></table:table-cell>\
         <table:covered-table-cell>{}</table:covered-table-cell></table:table-row></table:table></office:spreadsheet></c>",
        p("oval"),
        p("x"),
        p("seen"),
        p("leads on"),
        p("gone"),
    );
    let chart = format!(
        "<c><office:body><office:chart><chart:chart><chart:title>{}</chart:title><table:table><table:table-row>\
         <table:table-cell>{}</table:table-cell><table:table-cell>{}</table:table-cell></table:table-row></table:table></chart:chart></office:chart></office:body></c>",
        p("Tides"),
        p("May"),
        p("7"),
    );
    let parts = with(ods(), vec![("content.xml", content), ("Object 1/content.xml", chart)]);
    let (text, left_out) = read(&parts, "a.ods");
    assert_eq!(text, "## A\n\nx | x\nseen\n\noval\n\nTides\nMay | 7\n\nleads on");
    assert_eq!(left_out, [(Kind::HiddenText, 5), (Kind::Pictures, 1)]);
}

#[test]
fn binary_sheets_have_drawings() {
    let drawn = relations(&[
        ("r1", "comments", "../comments1.bin"),
        ("r2", "drawing", "../drawings/drawing1.xml"),
    ]);
    let drawing = "<wsDr><sp><txBody><p><r><t>Boxed</t></r></p></txBody></sp><pic/></wsDr>";
    let parts = with(
        xlsb(),
        vec![
            ("xl/worksheets/_rels/sheet1.bin.rels", drawn),
            ("xl/drawings/drawing1.xml", drawing.to_owned()),
            ("xl/comments1.bin", "\u{1}\u{2}".to_owned()),
        ],
    );
    let (text, left_out) = read(&parts, "a.xlsb");
    assert!(text.contains("Port | 7.5") && text.ends_with("Boxed"), "{text}");
    assert_eq!(left_out, [(Kind::UnreadParts, 1), (Kind::Pictures, 1)]);
}

#[test]
fn a_book_of_2003_is_read_whatever_it_is_called() {
    let book = "<?xml version=\"1.0\"?><Workbook xmlns=\"urn:schemas-microsoft-com:office:spreadsheet\">\
        <Worksheet ss:Name=\"T\"><Table><Row><Cell><Data ss:Type=\"String\">Port</Data></Cell><Cell ss:Index=\"3\"><Data ss:Type=\"Number\">7.50</Data></Cell></Row>\
        <Row ss:Hidden=\"1\"><Cell><Data ss:Type=\"String\">no</Data></Cell></Row>\
        <Row><Cell><Data ss:Type=\"DateTime\">2026-11-22T00:00:00.000</Data></Cell></Row></Table></Worksheet></Workbook>";
    for name in ["a.xls", "a.xml"] {
        let read = extract(book.as_bytes(), name, &Limits::default()).unwrap();
        assert_eq!(read.text, "## T\n\nPort | 7.5\n2026-11-22");
        assert_eq!(read.left_out.count(Kind::HiddenText), 2);
    }
}

#[test]
fn slides_are_read_by_position_with_their_numbers() {
    let shape = |at: (u32, u32), text: &str| {
        format!(
            "<p:sp><p:nvSpPr/><p:spPr><a:xfrm><a:off x=\"{}\" y=\"{}\"/></a:xfrm></p:spPr><p:txBody>{text}</p:txBody></p:sp>",
            at.0, at.1
        )
    };
    let p = |properties: &str, text: &str| {
        format!("<a:p><a:pPr {properties}</a:pPr><a:r><a:t>{text}</a:t></a:r></a:p>")
    };
    let number = "><a:buAutoNum type=\"romanUcPeriod\"/>";
    let slide = format!(
        "<p:sld><p:cSld><p:spTree>{}{}{}</p:spTree></p:cSld></p:sld>",
        shape(
            (10, 900_000),
            &[
                p(number, "ebb"),
                p("lvl=\"1\">", "slow"),
                p(number, "flow"),
                p(">", "slack"),
                p(number, "anew")
            ]
            .concat()
        ),
        shape((900_000, 100_000), &p(">", "right")),
        shape((10, 200_000), &p(">", "left")),
    );
    let master = format!(
        "<p:sldMaster><p:cSld><p:spTree>{}<p:sp><p:nvSpPr><p:nvPr><p:ph type=\"title\"/></p:nvPr></p:nvSpPr><p:txBody>{}</p:txBody></p:sp></p:spTree></p:cSld></p:sldMaster>",
        shape((0, 0), &p(">", "Secret")),
        p(">", "Click to edit"),
    );
    let parts = with(
        pptx(),
        vec![
            ("ppt/slides/slide1.xml", slide),
            (
                "ppt/slides/_rels/slide1.xml.rels",
                relations(&[
                    ("r1", "slideLayout", "../slideLayouts/slideLayout1.xml"),
                    ("r2", "comments", "../comments/comment1.xml"),
                ]),
            ),
            (
                "ppt/comments/comment1.xml",
                "<p:cmLst><p:cm><p:text>why so?</p:text></p:cm></p:cmLst>".to_owned(),
            ),
            ("ppt/slideLayouts/slideLayout1.xml", "<p:sldLayout/>".to_owned()),
            (
                "ppt/slideLayouts/_rels/slideLayout1.xml.rels",
                relations(&[("r1", "slideMaster", "../slideMasters/slideMaster1.xml")]),
            ),
            ("ppt/slideMasters/slideMaster1.xml", master),
        ],
    );
    let (text, _) = read(&parts, "a.pptx");
    let expected = "## Slide 2\n\nleft\nright\nI. ebb\n- slow\nII. flow\nslack\nI. anew\n\n[Comment: why so?]\n\nOn each slide: Secret";
    assert!(text.ends_with(expected), "{text}");
}
