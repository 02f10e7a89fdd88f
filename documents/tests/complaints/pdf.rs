//! PDF pages written here.

use std::fmt::Write as _;

use super::{Right, Row, hidden, row};
use crate::common::pdf_of;

/// A font of five glyphs, all boxes. Its table maps them to T, i, d, e, ž.
const FONT: &str = "000100000008008000030000636d617003210010000001180000004c676c7966d0cf47090000017400000082686561642f69bdca0000008c000000366868656105160160000000c400000024686d7478028a0096000001080000000e6c6f63610075004e000001640000000e6d61787000080006000000e800000020706f737400030000000001f80000002000010000000100004c5b30dc5f0f3cf5000303e800000000e72fbd1700000000e72fbd170032000001c202bc000000030002000000000000000100000320ff38000001f40032003201c2000100000000000000000000000000000001000100000006000400010000000000020000000000000000000000000000000001f400320032003200320032003200000000000200000003000000140003000100000014000400380000000a000800020002005400650069017effff0000005400640069017effffffadff9fff99fe8700010000000000000000000000000000000d001a002700340041000000010032000001c202bc0003000033211121320190fe7002bc0000010032000001c202bc0003000033211121320190fe7002bc0000010032000001c202bc0003000033211121320190fe7002bc0000010032000001c202bc0003000033211121320190fe7002bc0000010032000001c202bc0003000033211121320190fe7002bc0000000003000000000000000000000000000000000000000000000000000000000000";

pub(super) fn stream(entries: &str, content: &str) -> String {
    format!("<< {entries} /Length {} >>\nstream\n{content}\nendstream", content.len())
}

/// Makes a page of this content. Its further objects begin at number 6; the first is the font `F2`.
pub(super) fn page(content: &str, more: &[String]) -> Vec<u8> {
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Count 1 /Kids [3 0 R] >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R /F2 6 0 R >> /ExtGState << /G << /ca 0 >> >> >> >>".to_owned(),
        stream("", content),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
    ];
    objects.extend(more.iter().cloned());
    pdf_of(&objects, "")
}

/// Makes a tagged page whose content has these structure elements, by number. The first is object 8.
fn tagged(content: &str, elements: &[&str]) -> Vec<u8> {
    let ids: String = (8..).take(elements.len()).map(|id| format!("{id} 0 R ")).collect();
    let tree = format!("<< /Type /StructTreeRoot /ParentTree << /Nums [4 [{ids}]] >> >>");
    let elements = elements.iter().map(|element| format!("<< /Type /StructElem {element} >>"));
    let more: Vec<String> = ["null".to_owned(), tree].into_iter().chain(elements).collect();
    let pdf = String::from_utf8(page(content, &more)).unwrap();
    let pdf = pdf.replace("/Type /Catalog", "/Type /Catalog /StructTreeRoot 7 0 R");
    pdf.replace("/Type /Page ", "/Type /Page /StructParents 4 ").into_bytes()
}

pub(super) fn line(x: u32, y: u32, text: &str) -> String {
    format!("BT /F1 12 Tf {x} {y} Td ({text}) Tj ET\n")
}

/// Makes a font of this collection with the glyphs above; its codes are glyph ids.
fn embedded(ordering: &str) -> Vec<String> {
    vec![
        "<< /Type /Font /Subtype /Type0 /BaseFont /F /Encoding /Identity-H /DescendantFonts [7 0 R] >>".to_owned(),
        format!("<< /Type /Font /Subtype /CIDFontType2 /BaseFont /F /CIDToGIDMap /Identity /DW 500 /CIDSystemInfo << /Registry (Adobe) /Ordering ({ordering}) /Supplement 0 >> /FontDescriptor 8 0 R >>"),
        "<< /Type /FontDescriptor /FontName /F /Flags 4 /FontBBox [0 0 500 700] /ItalicAngle 0 /Ascent 800 /Descent -200 /CapHeight 700 /StemV 80 /FontFile2 9 0 R >>".to_owned(),
        stream(&format!("/Filter /ASCIIHexDecode /Length1 {}", FONT.len() / 2), &format!("{FONT}>")),
    ]
}

/// Makes a font with one byte a character, and a table of their meanings.
fn meaning(name: &str, table: &[(u8, &str)]) -> Vec<String> {
    let mut all = format!("{} beginbfchar\n", table.len());
    for (code, letter) in table {
        let units: String = letter.encode_utf16().map(|unit| format!("{unit:04X}")).collect();
        writeln!(all, "<{code:02X}> <{units}>").unwrap();
    }
    let widths = vec!["600"; 256].join(" ");
    vec![
        format!(
            "<< /Type /Font /Subtype /Type1 /BaseFont /{name} /FirstChar 0 /LastChar 255 /Widths [{widths}] /ToUnicode 7 0 R >>"
        ),
        stream(
            "",
            &format!(
                "/CIDInit /ProcSet findresource begin begincmap 1 begincodespacerange <00> <FF> endcodespacerange\n{all}endbfchar endcmap end"
            ),
        ),
    ]
}

pub(crate) fn rows() -> Vec<Row> {
    let japanese = "BT /F2 12 Tf 72 700 Td <0001000200030004> Tj ET";
    let watermark = format!(
        "{}{}BT /F1 60 Tf 0.7 0.7 -0.7 0.7 150 200 Tm (DRAFT) Tj ET",
        line(72, 700, "first line of it"),
        line(72, 686, "second line of it")
    );
    let slanted = "BT /F1 12 Tf 0.94 0.34 -0.34 0.94 72 600 Tm (slanted words) Tj 0 -14 Td (go on below) Tj ET";
    let unseen = format!(
        "{}1 g {} 0 g q 0 0 5 5 re W n {} Q {} 0 g 60 625 300 20 re f BT /F1 0.5 Tf 72 540 Td (tiny) Tj ET q /G gs {} Q BT 3 Tr /F1 12 Tf 72 560 Td (unpainted) Tj 0 Tr ET",
        line(72, 700, "seen"),
        line(72, 680, "white"),
        line(72, 660, "clipped"),
        line(72, 630, "covered"),
        line(72, 500, "clear")
    );
    let columns = [
        line(72, 700, "The committee reviewed the annual"),
        line(72, 686, "report and"),
        line(330, 700, "approved the budget for the"),
        line(330, 686, "coming fiscal year."),
    ]
    .concat();
    let numbered: String = (0..12)
        .map(|at| {
            let y = 700 - 14 * at;
            let words =
                if at == 5 { String::new() } else { line(90, y, "the supplier shall deliver") };
            line(60, y, &(at + 1).to_string()) + &words
        })
        .collect();
    let table: String = (0..12)
        .map(|at| {
            line(60, 700 - 14 * at, &(at + 1).to_string())
                + &line(90, 700 - 14 * at, "Bolt")
                + &line(300, 700 - 14 * at, "4.50")
        })
        .collect();
    let initial = "BT /F1 36 Tf 72 672 Td (T) Tj ET BT /F1 12 Tf 96 686 Td (he tide turns twice) Tj 0 -14 Td (a day at the quay) Tj ET";
    let hebrew: Vec<(u8, &str)> = vec![
        (65, "נ"),
        (66, "ס"),
        (67, "פ"),
        (68, "ח"),
        (69, "א"),
        (70, "("),
        (71, ")"),
        (55, "7"),
        (46, "."),
        (53, "5"),
        (37, "%"),
        (32, " "),
    ];
    let symbols = meaning("ABCDEF+SymbolMT", &[(180, "\u{f0b4}"), (45, "\u{f02d}")]);
    let ligatures = meaning(
        "ABCDEF+CMR10",
        &[(12, "\u{c}"), (14, "\u{e}"), (97, "a"), (110, "n"), (99, "c"), (101, "e")],
    );
    let dynamic = pdf_of(
        &[
            "<< /Type /Catalog /Pages 2 0 R /NeedsRendering true /AcroForm << /XFA [] >> >>"
                .to_owned(),
            "<< /Type /Pages /Count 1 /Kids [3 0 R] >>".to_owned(),
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] >>".to_owned(),
        ],
        "",
    );
    let spaced = "BT /F1 14 Tf 6 Tc 72 700 Td (TERMS AND CONDITIONS) Tj ET ".to_owned()
        + &line(72, 670, "plain words");
    vec![
        row(
            "a collection's numbers, embedded",
            "a.pdf",
            page(&japanese.replace("0001000200030004", "003500460045"), &embedded("Japan1")),
            &["Ted"],
            &[],
        ),
        row(
            "glyphs without a table",
            "a.pdf",
            page(japanese, &embedded("Identity")),
            &["Tide"],
            &["\u{fffd}"],
        ),
        row(
            "content that cannot be read",
            "a.pdf",
            page(
                &[
                    &line(72, 700, "before"),
                    "1 2 3 re f ] ",
                    &line(72, 680, "between"),
                    "/Span << /ActualText (x >> BDC [ 3 d ",
                    &line(72, 660, "behind"),
                ]
                .concat(),
                &[],
            ),
            &["before\nbetween\nbehind"],
            &[],
        ),
        row(
            "a slanted mark over the text",
            "a.pdf",
            page(&watermark, &[]),
            &["first line of it\nsecond line of it"],
            &[],
        ),
        row("slanted lines", "a.pdf", page(slanted, &[]), &["slanted words\ngo on below"], &[]),
        hidden(
            "letters that nobody sees",
            "a.pdf",
            page(&unseen, &[]),
            &["seen"],
            &["white", "clipped", "covered", "tiny", "clear", "unpainted"],
        ),
        row(
            "short columns",
            "a.pdf",
            page(&columns, &[]),
            &["annual\nreport and", "for the\ncoming"],
            &[" | "],
        ),
        row(
            "numbers of lines",
            "a.pdf",
            page(&numbered, &[]),
            &["deliver\nthe supplier", "1 2 3 4 5 6 7 8 9 10 11 12"],
            &[" | "],
        ),
        row(
            "numbers of a table's rows",
            "a.pdf",
            page(&table, &[]),
            &["1 | Bolt | 4.50", "12 | Bolt | 4.50"],
            &[],
        ),
        row(
            "a large first letter",
            "a.pdf",
            page(initial, &[]),
            &["The tide turns twice\na day"],
            &[],
        ),
        row(
            "brackets and percents from the right",
            "a.pdf",
            page("BT /F2 12 Tf 72 700 Td (7.5% FE DCBAG) Tj ET", &meaning("Courier", &hebrew)),
            &["7.5%"],
            &["%7.5"],
        ),
        row(
            "brackets that are named in order",
            "a.pdf",
            page("BT /F2 12 Tf 72 700 Td (GE DCBAF) Tj ET", &meaning("Courier", &hebrew)),
            &["(נספח א)"],
            &[],
        ),
        row(
            "signs of symbol fonts",
            "a.pdf",
            page("BT /F2 12 Tf 72 700 Td (\\264-) Tj ET", &symbols),
            &["×", "−"],
            &["\u{fffd}"],
        ),
        row(
            "old ligatures",
            "a.pdf",
            page("BT /F2 12 Tf 72 700 Td (\\014nance) Tj ET", &ligatures),
            &["finance"],
            &[],
        ),
        row(
            "a space between numbers that stand side by side",
            "a.pdf",
            page(
                "BT /F1 12 Tf 72 700 Td [(High)-20(er)15-340(wat)-20(er)15-340(at)10-310(n)-5(oon)] TJ ET",
                &[],
            ),
            &["Higher water at noon"],
            &[],
        ),
        row(
            "letters set apart",
            "a.pdf",
            page(&spaced, &[]),
            &["TERMS AND CONDITIONS", "plain words"],
            &[],
        ),
        row(
            "letters as a clip that something is drawn through",
            "a.pdf",
            page(
                &format!(
                    "{}q BT /F2 30 Tf 7 Tr 72 500 Td <00010002000300040005> Tj ET 1 0 0 rg 0 0 612 792 re f Q {}",
                    line(72, 700, "above"),
                    line(72, 300, "below"),
                ),
                &embedded("Identity"),
            ),
            &["above", "Tidež", "below"],
            &[],
        ),
        hidden(
            "letters as a clip that nothing is drawn through",
            "a.pdf",
            page(
                &format!(
                    "{}q BT /F2 30 Tf 7 Tr 72 500 Td <00010002000300040005> Tj ET Q 1 0 0 rg 0 0 20 20 re f {}",
                    line(72, 700, "above"),
                    line(72, 300, "below"),
                ),
                &embedded("Identity"),
            ),
            &["above", "below"],
            &["Tide"],
        ),
        row(
            "several values of a list",
            "a.pdf",
            pdf_of(
                &[
                    "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
                    "<< /Type /Pages /Count 1 /Kids [3 0 R] >>".to_owned(),
                    "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Annots [4 0 R] >>".to_owned(),
                    "<< /Type /Annot /Subtype /Widget /FT /Ch /Ff 2097152 /T (l) /Opt [[(d) (Danish)] [(f) (Finnish)] [(i) (Irish)]] /V [(d) (i)] /Rect [72 500 200 560] >>".to_owned(),
                ],
                "",
            ),
            &["Danish\nIrish"],
            &["Finnish"],
        ),
        row(
            "a font beside one whose codes are letters",
            "a.pdf",
            String::from_utf8(page("BT /F2 30 Tf 72 500 Td <00010002000300040005> Tj ET", &embedded("Identity")))
                .unwrap()
                .replace(
                    "/Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding",
                    "/Subtype /Type0 /BaseFont /G /Encoding /UniJIS-UCS2-H /DescendantFonts [<< /Type /Font /Subtype /CIDFontType2 /BaseFont /G /CIDSystemInfo << /Registry (Adobe) /Ordering (Japan1) /Supplement 0 >> /FontDescriptor 8 0 R >>]",
                ),
            &["Tidež"],
            &[],
        ),
        hidden(
            "white on white on a page of many areas",
            "a.pdf",
            page(
                &format!(
                    "{}{}1 g {}",
                    "0.5 g 0 0 4 4 re f ".repeat(600),
                    "0 g ".to_owned() + &line(72, 700, "above"),
                    line(72, 300, "unseen")
                ),
                &[],
            ),
            &["above"],
            &["unseen"],
        ),
        Row {
            kind: "a dynamic form",
            name: "a.pdf",
            document: dynamic,
            right: Right::Refused("dynamic XFA"),
        },
        row(
            "texts of structure elements",
            "a.pdf",
            tagged(
                &format!(
                    "/Span << /MCID 0 >> BDC {}EMC /Span << /MCID 1 >> BDC {}EMC /Figure << /MCID 2 >> BDC {}EMC /P << /MCID 3 >> BDC {}EMC",
                    line(72, 700, "Druk-"),
                    line(72, 686, "ker"),
                    line(72, 600, "label"),
                    line(72, 500, "as it is"),
                ),
                &["/S /Span /ActualText (Drucker)", "/S /Span /P 8 0 R", "/S /Figure /ActualText (described)", "/S /P"],
            ),
            &["Drucker\n\nlabel\n\nas it is"],
            &["Druk-", "\nker", "described"],
        ),
        row(
            "words drawn as lines",
            "a.pdf",
            page(
                &format!(
                    "{}/Span << /ActualText (Tides) >> BDC 72 600 m 99 600 l 99 612 l f EMC /Span << /ActualText (off) >> BDC 900 600 m 999 600 l 999 612 l f EMC",
                    line(72, 700, "above")
                ),
                &[],
            ),
            &["above\n\nTides"],
            &["off"],
        ),
        row(
            "accents of TeX",
            "a.pdf",
            page(
                "BT /F1 12 Tf 72 700 Td [(G)-1(\\250)333(o)-1(del, caf)(\\264)445(e 5\\2641)] TJ ET",
                &[],
            ),
            &["Gödel, café 5´1"],
            &[],
        ),
    ]
}
