//! Spreadsheets.

use super::{
    Right, Row,
    binary_book::{book, hidden_columns, hidden_row, label, number, record},
    hidden, row, unread,
};
use crate::common::{Parts, ods, package, relations, texts, xlsb, xlsx};

/// Replaces parts of a book.
pub(super) fn with(mut parts: Parts, others: Vec<(&'static str, String)>) -> Vec<u8> {
    for (name, text) in texts(others) {
        parts.retain(|(known, _)| *known != name);
        parts.push((name, text));
    }
    package(&parts)
}

pub(super) fn sheet(rows: &str, more: &str) -> String {
    format!("<worksheet><sheetData>{rows}</sheetData>{more}</worksheet>")
}

fn text(text: &str) -> String {
    format!("<c t='inlineStr'><is><t>{text}</t></is></c>")
}

/// Makes a book of one sheet with numbers in these formats.
fn formatted(all: &[(&str, f64)]) -> Vec<u8> {
    let formats: String = (164..)
        .zip(all)
        .map(|(id, (code, _))| {
            format!("<numFmt numFmtId='{id}' formatCode='{}'/>", code.replace('"', "&quot;"))
        })
        .collect();
    let styles: String =
        (164..).take(all.len()).map(|id| format!("<xf numFmtId='{id}'/>")).collect();
    let rows: String = all
        .iter()
        .enumerate()
        .map(|(at, (_, value))| format!("<row><c s='{at}'><v>{value}</v></c></row>"))
        .collect();
    with(
        xlsx(),
        vec![
            (
                "xl/styles.xml",
                format!(
                    "<styleSheet><numFmts>{formats}</numFmts><cellXfs>{styles}</cellXfs></styleSheet>"
                ),
            ),
            ("xl/worksheets/sheet1.xml", sheet(&rows, "")),
        ],
    )
}

/// Makes a record of a binary part, as in `common`.
fn new_record(kind: u16, content: &[u8]) -> Vec<u8> {
    let kind = if kind < 0x80 {
        vec![kind as u8]
    } else {
        vec![kind as u8 & 0x7f | 0x80, (kind >> 7) as u8]
    };
    [&kind[..], &[content.len() as u8], content].concat()
}

fn numbers(all: &[u32]) -> Vec<u8> {
    all.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn wide(text: &str) -> Vec<u8> {
    let units: Vec<u16> = text.encode_utf16().collect();
    [numbers(&[units.len() as u32]), units.iter().flat_map(|unit| unit.to_le_bytes()).collect()]
        .concat()
}

/// Makes an XLSB book: a percentage, a hidden row, a hidden column, a hidden sheet.
fn binary() -> Vec<u8> {
    let cell = |column: u32, style: u32, value: f64| {
        new_record(5, &[numbers(&[column, style]), value.to_le_bytes().to_vec()].concat())
    };
    let words =
        |column: u32, text: &str| new_record(6, &[numbers(&[column, 0]), wide(text)].concat());
    let row = |number: u32, flags: u8| {
        new_record(0, &[numbers(&[number, 0]), vec![0, 0, 0, flags], vec![0; 5]].concat())
    };
    let sheet = |rows: Vec<Vec<u8>>| {
        [
            new_record(0x81, &[]),
            new_record(0x94, &numbers(&[0, 9, 0, 9])),
            new_record(390, &[]),
            new_record(60, &[numbers(&[3, 3, 2_000, 0]), vec![1, 0]].concat()),
            new_record(391, &[]),
            new_record(0x91, &[]),
            rows.concat(),
            new_record(0x92, &[]),
            new_record(0x82, &[]),
        ]
        .concat()
    };
    let styles = [
        new_record(615, &numbers(&[1])),
        new_record(44, &[&[164, 0][..], &wide("0.0\" m\"")].concat()),
        new_record(617, &numbers(&[3])),
        new_record(47, &[0; 16]),
        new_record(47, &[&[0, 0, 10, 0][..], &[0; 12]].concat()),
        new_record(47, &[&[0, 0, 164, 0][..], &[0; 12]].concat()),
        new_record(618, &[]),
    ]
    .concat();
    let mut parts: Parts = xlsb();
    let book = [
        new_record(0x83, &[]),
        new_record(0x8f, &[]),
        new_record(0x9c, &[numbers(&[0, 1]), wide("r1"), wide("Ports")].concat()),
        new_record(0x9c, &[numbers(&[2, 2]), wide("r2"), wide("Off")].concat()),
        new_record(0x90, &[]),
        new_record(0x84, &[]),
    ];
    parts.retain(|(name, _)| name.ends_with("Types].xml"));
    parts.extend([
        ("xl/workbook.bin", book.concat()),
        (
            "xl/_rels/workbook.bin.rels",
            relations(&[
                ("r1", "worksheet", "worksheets/sheet1.bin"),
                ("r2", "worksheet", "worksheets/sheet2.bin"),
                ("r3", "styles", "styles.bin"),
            ])
            .into_bytes(),
        ),
        ("xl/styles.bin", styles),
        (
            "xl/worksheets/sheet1.bin",
            sheet(vec![
                row(0, 0),
                cell(0, 1, 0.125),
                cell(1, 2, 7.0),
                words(3, "offcolumn"),
                row(1, 0x10),
                words(0, "offrow"),
            ]),
        ),
        ("xl/worksheets/sheet2.bin", sheet(vec![row(0, 0), words(0, "offsheet")])),
    ]);
    package(&parts)
}

/// Makes a book with shapes, controls and a chart of a newer kind.
fn drawn() -> Vec<u8> {
    let shape = |name: &str, words: &str| {
        format!(
            "<xdr:sp><xdr:nvSpPr><xdr:cNvPr id='1' {name}/></xdr:nvSpPr><xdr:txBody><a:p>{words}</a:p></xdr:txBody></xdr:sp>"
        )
    };
    let run = |text: &str| format!("<a:r><a:t>{text}</a:t></a:r>");
    let struck = "<a:r><a:rPr strike='sngStrike'/><a:t>three</a:t></a:r>";
    let words = format!("{}<a:br/>{}{struck}", run("one"), run("two"));
    let chart = "<mc:AlternateContent><mc:Choice><xdr:graphicFrame><cx:chart r:id='x'/></xdr:graphicFrame></mc:Choice>";
    let other = shape("", &run("This chart is not available"));
    let tick = |label: &str, state: &str| {
        format!(
            "<v:shape><v:textbox><div>{label}</div></v:textbox><x:ClientData ObjectType='Checkbox'>{state}</x:ClientData></v:shape>"
        )
    };
    let points = "<cx:strDim type='cat'><cx:lvl><cx:pt idx='0'>Low</cx:pt><cx:pt idx='1'>Mid</cx:pt><cx:pt idx='2'>Top</cx:pt></cx:lvl></cx:strDim>\
        <cx:numDim type='val'><cx:lvl formatCode='0%'><cx:pt idx='0'>0.01</cx:pt><cx:pt idx='2'>0.03</cx:pt></cx:lvl></cx:numDim>";
    with(
        xlsx(),
        vec![
            (
                "xl/worksheets/_rels/sheet1.xml.rels",
                relations(&[
                    ("d", "drawing", "../drawings/d.xml"),
                    ("v", "vmlDrawing", "../drawings/v.vml"),
                ]),
            ),
            (
                "xl/drawings/d.xml",
                format!(
                    "<xdr:wsDr>{}{}{chart}<mc:Fallback>{other}</mc:Fallback></mc:AlternateContent></xdr:wsDr>",
                    shape("", &words),
                    shape("hidden='1'", &run("unseen"))
                ),
            ),
            (
                "xl/drawings/v.vml",
                format!(
                    "<xml>{}{}</xml>",
                    tick("Agreed", "<x:Checked>1</x:Checked>"),
                    tick("Refused", "")
                ),
            ),
            ("xl/drawings/_rels/d.xml.rels", relations(&[("x", "chartEx", "../charts/x.xml")])),
            (
                "xl/charts/x.xml",
                format!(
                    "<cx:chartSpace><cx:chartData><cx:data id='0'>{points}</cx:data></cx:chartData></cx:chartSpace>"
                ),
            ),
        ],
    )
}

pub(crate) fn rows() -> Vec<Row> {
    let formats = [
        "0.0%",
        "$#,##0.00",
        "00000",
        "0 \"kg\"",
        "#,##0.00;(#,##0.00)",
        "0.0,,\" M\"",
        "yyyy-mm-dd",
    ];
    let old: Vec<Vec<u8>> = (0_u16..)
        .zip([0.075, 1_234.5, 1_234.0, 75.0, -42.5, 12_500_000.0, 46_096.0])
        .map(|(row, value)| number(row, 0, row + 1, value))
        .collect();
    let off = (
        false,
        vec![
            hidden_columns(1, 1),
            hidden_row(1),
            label(0, 0, "seen"),
            label(0, 1, "offcolumn"),
            label(1, 0, "offrow"),
        ],
    );
    let words = (false, vec![label(0, 0, "Hi Žižek"), label(0, 1, "plain"), label(1, 0, "Дата")]);
    let white = "<styleSheet><fonts><font/><font><color rgb='FFFFFFFF'/></font></fonts><fills><fill/><fill><patternFill patternType='solid'><fgColor rgb='FF000000'/></patternFill></fill></fills>\
        <cellXfs><xf/><xf fontId='1' fillId='0'/><xf fontId='1' fillId='1'/></cellXfs></styleSheet>";
    let color = |color: &str| format!("<font><color {color}/></font>");
    let whites = format!(
        "<styleSheet><fonts><font/>{}{}{}{}{}</fonts><fills><fill/><fill><patternFill patternType='solid'><fgColor indexed='8'/></patternFill></fill></fills>\
         <cellXfs><xf/><xf fontId='1'/><xf fontId='2'/><xf fontId='3'/><xf fontId='4' fillId='1'/><xf fontId='5'/></cellXfs></styleSheet>",
        color("theme='0'"),
        color("rgb='ffffffff'"),
        color("rgb='FFFEFEFE'"),
        color("rgb='FF000000'"),
        color("theme='1' tint='0.99'"),
    );
    let mut themed = xlsx();
    for (name, part) in &mut themed {
        if *name == "xl/_rels/workbook.xml.rels" {
            *part = relations(&[
                ("r1", "worksheet", "worksheets/sheet1.xml"),
                ("r3", "styles", "styles.xml"),
                ("r5", "theme", "theme/theme1.xml"),
            ])
            .into_bytes();
        }
    }
    let shown_2003 = "<?xml version='1.0'?><Workbook xmlns='urn:schemas-microsoft-com:office:spreadsheet'>\
        <Styles><Style ss:ID='p'><NumberFormat ss:Format='Percent'/></Style><Style ss:ID='w'><NumberFormat ss:Format='0%'/></Style><Style ss:ID='c' ss:Parent='w'/></Styles>\
        <Worksheet ss:Name='T'><Table><Column ss:Index='2' ss:Hidden='1' ss:Span='1'/><Column ss:StyleID='c'/><Row>\
        <Cell ss:StyleID='p'><Data ss:Type='Number'>0.075</Data></Cell><Cell><Data ss:Type='String'>offcolumn</Data></Cell><Cell><Data ss:Type='String'>offspan</Data></Cell>\
        <Cell><Data ss:Type='Number'>0.12</Data></Cell><Cell ss:Formula='=RC[-1]*2'/><Cell><Data ss:Type='String'>end</Data></Cell></Row></Table></Worksheet></Workbook>";
    let cell =
        |style: u8, text: &str| format!("<c s='{style}' t='inlineStr'><is><t>{text}</t></is></c>");
    let linked = with(xlsx(), vec![
        ("xl/worksheets/sheet1.xml", sheet(&format!("<row>{}</row>", text("terms")), "<hyperlinks><hyperlink ref='A1' r:id='l'/></hyperlinks><headerFooter><oddHeader>&amp;C&amp;\"Arial,Bold\"&amp;12Secret &amp;&amp; sealed&amp;R&amp;P</oddHeader></headerFooter>")),
        ("xl/worksheets/_rels/sheet1.xml.rels", "<Relationships><Relationship Id='l' Type='http://x/hyperlink' Target='https://a.org/t' TargetMode='External'/></Relationships>".to_owned()),
    ]);
    let chart = with(xlsx(), vec![
        ("xl/worksheets/_rels/sheet1.xml.rels", relations(&[("d", "drawing", "../drawings/d.xml")])),
        ("xl/drawings/d.xml", "<wsDr><graphicFrame><graphic><graphicData><chart r:id='c'/></graphicData></graphic></graphicFrame><sp><txBody><p><r><t>Boxed</t></r></p></txBody></sp></wsDr>".to_owned()),
        ("xl/drawings/_rels/d.xml.rels", relations(&[("c", "chart", "../charts/c.xml")])),
        ("xl/charts/c.xml", "<chartSpace><title><tx><rich><p><r><t>Tides of May</t></r></p></rich></tx></title></chartSpace>".to_owned()),
    ]);
    let odd = with(
        xlsx(),
        vec![("xl/worksheets/sheet2.xml", "<xm:macrosheet><sheetData><row>".to_owned())],
    );
    let of_2003 = "<?xml version='1.0'?><Workbook xmlns='urn:schemas-microsoft-com:office:spreadsheet'><Worksheet ss:Name='T'><Table><Row><Cell><Data ss:Type='String'>Port</Data></Cell><Cell><Data ss:Type='Number'>19.50</Data></Cell></Row></Table></Worksheet></Workbook>";
    let open = |rows: &str| {
        format!(
            "<c><office:spreadsheet><table:table table:name='A'>{rows}</table:table></office:spreadsheet></c>"
        )
    };
    let shown = |kind: &str, text: &str| {
        format!("<table:table-cell {kind}><text:p>{text}</text:p></table:table-cell>")
    };
    let from_1904 = with(xlsx(), vec![
        ("xl/workbook.xml", "<workbook><workbookPr date1904='1'/><sheets><sheet name='A' r:id='r1'/></sheets></workbook>".to_owned()),
        ("xl/styles.xml", "<styleSheet><cellXfs><xf numFmtId='14'/><xf numFmtId='20'/></cellXfs></styleSheet>".to_owned()),
        ("xl/worksheets/sheet1.xml", sheet("<row><c s='0'><v>0</v></c><c s='1'><v>0.5</v></c><c s='0'><v>60</v></c></row>", "")),
    ]);
    let outside = "<Relationships><Relationship Id='o' Type='http://x/oleObject' Target='file:///C:/plan.docx' TargetMode='External'/></Relationships>";
    vec![
        row("runs in a cell", "a.xlsx", with(xlsx(), vec![("xl/worksheets/sheet1.xml", sheet("<row><c t='inlineStr'><is><r><t>10</t></r><r><rPr><vertAlign val='superscript'/></rPr><t>9</t></r><r><rPr><strike/></rPr><t> old</t></r></is></c></row>", ""))]), &["10⁹~~ old~~"], &[]),
        row("parts of seconds", "a.xlsx", formatted(&[("mm:ss.000", 90.25 / 86_400.0), ("[s].0", 1.96 / 86_400.0), ("ggge", 45_000.0)]), &["00:01:30.250", "00:00:02.0", "2023-03-15"], &[]),
        hidden("cells under a merged one", "a.xlsx", with(xlsx(), vec![("xl/worksheets/sheet1.xml", sheet(&format!("<row r='1'>{}{}{}</row>", text("over"), text("under"), text("beside")), "<mergeCells><mergeCell ref='A1:B2'/></mergeCells>"))]), &["over | beside"], &["under"]),
        hidden("rows without height", "a.xlsx", with(xlsx(), vec![("xl/worksheets/sheet1.xml", sheet(&format!("<row ht='0' customHeight='1'>{}</row><row>{}</row>", text("flat"), text("seen")), ""))]), &["seen"], &["flat"]),
        hidden("zeros", "a.xlsx", with(xlsx(), vec![("xl/worksheets/sheet1.xml", "<worksheet><sheetViews><sheetView showZeros='0'/></sheetViews><sheetData><row><c><v>8</v></c><c><v>0</v></c><c><v>9</v></c></row></sheetData></worksheet>".to_owned())]), &["8 | 9"], &["0"]),
        hidden("drawing", "a.xlsx", drawn(), &["one\ntwo~~three~~", "Low: 1% | Mid: | Top: 3%", "[x] Agreed", "[ ] Refused"], &["unseen"]),
        row("folders with backslashes", "a.xlsx", package(&xlsx().into_iter().map(|(name, part)| (&*name.replace('/', "\\").leak(), part)).collect::<Parts>()), &["Brest | 7.5"], &[]),
        row("cells as displayed", "a.xlsx", formatted(&[("0.0%", 0.075), ("$#,##0.00", 1_234.5), ("00000", 1_234.0), ("0 \"kg\"", 75.0), ("0.00E+00", 1.2e-5), ("# ?/?", 0.5), ("[h]:mm", 1.5)]), &["7.5%", "$1,234.50", "01234", "75 kg", "1.20E-05", "1/2", "36:00"], &[]),
        row("rows and cells behind the last number", "a.xlsx", with(xlsx(), vec![("xl/worksheets/sheet1.xml", sheet(&format!("<row r='4294967295'>{}</row><row>{}</row><row><c r='ZZZZZZZZ9'><v>7</v></c><c><v>8</v></c><c><v>9</v></c></row>", text("last"), text("behind")), ""))]), &["last", "behind", "7", "8", "9"], &[]),
        row("digits of other scripts, spaces", "a.xlsx", formatted(&[("[DBNum1][$-804]General", 105.0), ("[DBNum2][$-404]0", 34.0), ("[$-D000000]0.0", 12.5), ("\"a   b \"0", 7.0)]), &["一百〇五", "參肆", "๑๒.๕", "a   b 7"], &[]),
        row("cells as displayed", "a.xls", book(1_200, &formats, &[(false, old)]), &["7.5%", "$1,234.50", "01234", "75 kg", "(42.50)", "12.5 M", "2026-03-15"], &[]),
        hidden("formats and hidden parts", "a.xlsb", binary(), &["12.50% | 7.0 m"], &["offcolumn", "offrow", "offsheet"]),
        row("cells as displayed", "a.ods", with(ods(), vec![("content.xml", open(&format!("<table:table-row>{}</table:table-row>", shown("office:value-type='percentage' office:value='0.075'", "7.50%"))))]), &["7.50%"], &[]),
        row("a code page that is not meant", "a.xls", book(1_252, &[], &[words]), &["Hi Žižek | plain", "Дата"], &["\u{0}"]),
        row("formulas without a value", "a.xlsx", with(xlsx(), vec![("xl/worksheets/sheet1.xml", sheet("<row><c><f>SUM(B1:B2)</f></c></row>", ""))]), &["=SUM(B1:B2)"], &[]),
        row("formulas without a value", "a.xlsx", with(xlsx(), vec![("xl/worksheets/sheet1.xml", sheet("<row><c><f>SUM(B1:B2)</f><v></v></c><c><f>A1&amp;A1</f><v/></c><c t='str'><f>T(1)</f><v></v></c><c><v>7</v></c></row>", ""))]), &["=SUM(B1:B2) | =A1&A1", " | 7"], &["=T(1)"]),
        row("formulas that cells share", "a.xlsx", with(xlsx(), vec![("xl/worksheets/sheet1.xml", sheet("<row r='1'><c r='B1'><f t='shared' ref='B1:B3' si='0'>A1*$C$1</f><v>7</v></c></row><row r='2'><c r='B2'><f t='shared' si='0'/></c></row><row r='3'><c r='B3'><f t='shared' si='0'/><v>9</v></c></row>", ""))]), &["7\n=A2*$C$1\n9"], &[]),
        row("formats of texts", "a.xlsx", with(xlsx(), vec![("xl/styles.xml", "<styleSheet><numFmts><numFmt numFmtId='164' formatCode='@&quot; km&quot;'/></numFmts><cellXfs><xf numFmtId='164'/></cellXfs></styleSheet>".to_owned()), ("xl/worksheets/sheet1.xml", sheet(&format!("<row>{}</row>", text("five")), ""))]), &["five km"], &[]),
        hidden("formats that show no text", "a.xlsx", with(xlsx(), vec![("xl/styles.xml", "<styleSheet><numFmts><numFmt numFmtId='164' formatCode=';;;'/></numFmts><cellXfs><xf/><xf numFmtId='164'/></cellXfs></styleSheet>".to_owned()), ("xl/worksheets/sheet1.xml", sheet(&format!("<row>{}{}</row>", text("seen"), text("unseen").replace("<c ", "<c s='1' ")), ""))]), &["## Ports\n\nseen\n"], &["unseen"]),
        row("headers of some pages", "a.xlsx", with(xlsx(), vec![("xl/worksheets/sheet1.xml", sheet(&format!("<row>{}</row>", text("a")), "<headerFooter differentOddEven='1'><evenHeader>&amp;Leven</evenHeader><firstHeader>&amp;Lfirst</firstHeader></headerFooter>"))]), &["even"], &["first"]),
        row("struck text", "a.xlsx", with(xlsx(), vec![("xl/sharedStrings.xml", "<sst><si><r><rPr><strike/></rPr><t>EUR </t></r><r><rPr><b/><strike/></rPr><t>500</t></r><r><rPr><strike val='0'/></rPr><t> 650</t></r></si></sst>".to_owned()), ("xl/worksheets/sheet1.xml", sheet("<row><c t='s'><v>0</v></c></row>", ""))]), &["~~EUR 500~~ 650"], &[]),
        row("struck text", "a.xlsx", with(xlsx(), vec![("xl/styles.xml", white.replace("<color rgb='FFFFFFFF'/>", "<strike/>").replace("<font/>", "<font><strike val='0'/></font>")), ("xl/worksheets/sheet1.xml", sheet(&format!("<row>{}{}</row>", cell(1, "500"), cell(0, "650")), ""))]), &["~~500~~ | 650"], &[]),
        hidden("hidden rows and columns", "a.xlsx", with(xlsx(), vec![("xl/worksheets/sheet1.xml", format!("<worksheet><cols><col min='2' max='2' hidden='1'/></cols><sheetData><row>{}{}</row><row hidden='1'>{}</row></sheetData></worksheet>", text("seen"), text("offcolumn"), text("offrow")))]), &["seen"], &["offcolumn", "offrow"]),
        hidden("hidden rows, columns, sheets", "a.xls", book(1_200, &[], &[off, (true, vec![label(0, 0, "offsheet")])]), &["seen"], &["offcolumn", "offrow", "offsheet"]),
        hidden("hidden columns", "a.ods", with(ods(), vec![("content.xml", open(&format!("<table:table-column/><table:table-column table:visibility='collapse'/><table:table-row>{}{}</table:table-row>", shown("", "seen"), shown("", "offcolumn"))))]), &["seen"], &["offcolumn"]),
        hidden("white cells, formats of nothing", "a.xlsx", with(xlsx(), vec![("xl/styles.xml", white.replace("<fonts>", "<numFmts><numFmt numFmtId='164' formatCode=';;;'/></numFmts><fonts>").replace("<cellXfs>", "<cellXfs><xf numFmtId='164'/>")), ("xl/worksheets/sheet1.xml", sheet(&format!("<row>{}{}<c s='0'><v>4711</v></c></row>", cell(2, "white"), cell(3, "on black")), ""))]), &["on black"], &["white", "4711"]),
        hidden("white as Excel's palette and others write it", "a.xlsx", with(xlsx(), vec![("xl/styles.xml", whites), ("xl/worksheets/sheet1.xml", sheet(&format!("<row>{}{}{}{}{}{}</row>", cell(0, "seen"), cell(1, "theme"), cell(2, "small"), cell(3, "nearly"), cell(4, "onblack"), cell(5, "tint")), ""))]), &["seen\n"], &["theme", "small", "nearly", "onblack", "tint"]),
        row("letters of the theme on a ground of their own", "a.xlsx", with(themed, vec![("xl/theme/theme1.xml", "<a:theme><a:clrScheme><a:dk1><a:sysClr lastClr='000000'/></a:dk1><a:lt1><a:srgbClr val='FFFFFF'/></a:lt1><a:dk2><a:srgbClr val='1F3864'/></a:dk2></a:clrScheme></a:theme>".to_owned()), ("xl/styles.xml", "<styleSheet><fonts><font><color theme='0'/></font></fonts><fills><fill><patternFill patternType='solid'><fgColor theme='3'/></patternFill></fill></fills><cellXfs><xf fontId='0' fillId='0'/></cellXfs></styleSheet>".to_owned()), ("xl/worksheets/sheet1.xml", sheet(&format!("<row>{}</row>", cell(0, "head")), ""))]), &["head"], &[]),
        row("a colored table", "a.xlsx", with(xlsx(), vec![("xl/styles.xml", white.to_owned()), ("xl/worksheets/sheet1.xml", sheet(&format!("<row>{}</row>", cell(1, "head")), "<tableParts><tablePart/></tableParts>"))]), &["head"], &[]),
        row("targets of links, headers", "a.xlsx", linked, &["[terms](https://a.org/t)", "Secret & sealed"], &[]),
        row("charts, boxes", "a.xlsx", chart, &["Tides of May", "Boxed"], &[]),
        Row { kind: "an odd sheet", name: "a.xlsm", document: odd, right: Right::Unread { has: vec!["Brest | 7.5"] } },
        row("a book of 2003", "a.xls", of_2003, &["Port | 19.5"], &["<"]),
        hidden("a book of 2003: formats, formulas, hidden columns", "a.xls", shown_2003, &["7.50% | 12% | =RC[-1]*2 | end"], &["offcolumn", "offspan"]),
        row("a text that is not in the table of texts", "a.xlsx", with(xlsx(), vec![("xl/worksheets/sheet1.xml", sheet(&format!("<row><c t='s'><v>0</v></c><c t='s'><v>99</v></c>{}</row>", text("end")), ""))]), &["Port | \u{fffd} | end"], &[]),
        Row { kind: "a table of texts that breaks off", name: "a.xlsx", document: with(xlsx(), vec![("xl/sharedStrings.xml", "<sst><si><t>Port</t></si>".to_owned())]), right: Right::Refused("break off") },
        row("marks of struck text that are text", "a.xlsx", with(xlsx(), vec![("xl/sharedStrings.xml", "<sst><si><t>a ~~~~ b</t></si><si><t/></si></sst>".to_owned())]), &["a ~~~~ b"], &[]),
        row("a page that is called a book", "a.xls", "<div><table><tr><td>0042<td>T-shirt</table></div>", &["0042 | T-shirt"], &["<"]),
        row("a saved page that is called a book", "a.xls", "MIME-Version: 1.0\nContent-Type: multipart/related; boundary=b\n\n--b\nContent-Type: text/html\n\n<table><tr><td>W-1<td>1520</table>\n--b--\n", &["W-1 | 1520"], &["MIME"]),
        row("the first days", "a.xlsx", formatted(&[("yyyy-mm-dd", 0.0), ("h:mm", 0.0), ("d/m/yy h:mm", 0.5), ("yyyy-mm-dd", 60.0)]), &["1900-01-00\n00:00:00\n1900-01-00 12:00:00\n1900-02-29"], &[]),
        row("the first days from 1904 on", "a.xlsx", from_1904, &["1904-01-01 | 12:00:00 | 1904-03-01"], &[]),
        row("numbers that are no dates", "a.xlsx", formatted(&[("yyyy-mm-dd", -5.0), ("yyyy-mm-dd", 3e6), ("d/m/yy", 2_958_465.0)]), &["-5\n3000000\n9999-12-31"], &["1899"]),
        row("dates for some numbers", "a.xlsx", formatted(&[("[=0]\"-\";yyyy-mm-dd", 45_352.0), ("[=0]\"none\";yyyy-mm-dd", 0.0), ("0;\"a;b\";[h]:mm", 0.0)]), &["2024-03-01\nnone\n00:00:00"], &[]),
        unread("comments and text boxes", "a.xls", book(1_200, &[], &[(false, vec![label(0, 0, "seen"), record(0x1b6, &[1; 18])])]), &["seen"]),
        unread("charts", "a.xls", book(1_200, &[], &[(false, vec![label(0, 0, "seen"), record(0x5d, &[21, 0, 18, 0, 5, 0])])]), &["seen"]),
        unread("linked objects", "a.xlsx", with(xlsx(), vec![("xl/worksheets/_rels/sheet1.xml.rels", outside.to_owned())]), &["Brest | 7.5"]),
    ]
}
