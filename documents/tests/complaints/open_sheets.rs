//! Sheets of `OpenDocument`: cells as they are shown.

use std::time::{Duration, Instant};

use tidegate_documents::{Limits, extract};

use super::{Row, hidden, row};
use crate::common::{Parts, ods, package};

/// Makes a book of these styles, columns and cells.
fn book(styles: &str, columns: &str, cells: &[&str]) -> Vec<u8> {
    let cells: String = cells
        .iter()
        .map(|cell| match cell.strip_prefix('@') {
            Some(cell) => cell.to_owned(),
            None => format!("<table:table-cell><text:p>{cell}</text:p></table:table-cell>"),
        })
        .collect();
    let parts: Parts = ods()
        .into_iter()
        .map(|(name, part)| match name {
            "content.xml" => (name, format!("<office:document-content><office:automatic-styles>{styles}</office:automatic-styles><office:body><office:spreadsheet><table:table table:name=\"Ports\">{columns}<table:table-row>{cells}</table:table-row></table:table></office:spreadsheet></office:body></office:document-content>").into_bytes()),
            _ => (name, part),
        })
        .collect();
    package(&parts)
}

fn style(family: &str, name: &str, properties: &str) -> String {
    format!(
        "<style:style style:family=\"{family}\" style:name=\"{name}\"><style:text-properties {properties}/></style:style>"
    )
}

/// Each cell of a column looks up the column's style.
#[test]
fn a_long_name_of_a_style_costs_no_more_per_cell() {
    let name = "W".repeat(2_000_000);
    let styles = style("table-cell", &name, "style:text-line-through-style=\"solid\"");
    let column = format!(
        "<table:table-column table:number-columns-repeated=\"9999\" table:default-cell-style-name=\"{name}\"/>"
    );
    let bytes = book(&styles, &column, &["dear"; 5_000]);
    let start = Instant::now();
    let read = extract(&bytes, "long.ods", &Limits::default()).unwrap();
    assert!(start.elapsed() < Duration::from_secs(5), "took {:?}", start.elapsed());
    assert!(read.text.contains("~~dear~~ | ~~dear~~"), "{}", read.text);
}

pub(super) fn rows() -> Vec<Row> {
    let span = |name: &str, text: &str| {
        format!("<text:span text:style-name=\"{name}\">{text}</text:span>")
    };
    let styles = [
        style("text", "S", "style:text-line-through-style=\"solid\""),
        style("text", "R", "style:text-position=\"super 58%\""),
        style("text", "K", "fo:color=\"#000000\""),
        style("text", "H", "text:display=\"none\""),
        style("table-cell", "W", "fo:color=\"#ffffff\""),
        style("table-cell", "C", "style:text-line-through-style=\"solid\""),
        "<style:style style:family=\"table-cell\" style:name=\"B\"><style:table-cell-properties fo:background-color=\"#000000\"/><style:text-properties fo:color=\"#ffffff\"/></style:style>".to_owned(),
    ]
    .concat();
    let condition = format!(
        "{styles}<style:style style:family=\"table-cell\" style:name=\"M\"><style:map style:condition=\"value()=1\"/></style:style>"
    );
    let white =
        "@<table:table-cell table:style-name=\"W\"><text:p>pale words</text:p></table:table-cell>";
    let white_day = "@<table:table-cell table:style-name=\"W\" office:value-type=\"date\" office:date-value=\"2026-11-22\"><text:p>22.11.26</text:p></table:table-cell>";
    let column = "<table:table-column/><table:table-column table:default-cell-style-name=\"W\"/>";
    vec![
        row(
            "spaces in a cell",
            "spaces.ods",
            book(
                "",
                "",
                &[
                    "a<text:s text:c=\"3\"/>b",
                    "c <text:s/>d\n    e",
                    " f <text:span> g </text:span>",
                ],
            ),
            &["a   b | c  d e | f g"],
            &[],
        ),
        row(
            "struck, raised and annotated words of a cell",
            "looks.ods",
            book(
                &styles,
                "",
                &[
                    &format!("{} EUR 650", span("S", "EUR 500")),
                    &format!("10{} m", span("R", "6")),
                    "<text:ruby><text:ruby-base>漢</text:ruby-base><text:ruby-text>かん</text:ruby-text></text:ruby>",
                    "x<office:annotation><text:p>a remark</text:p></office:annotation><draw:frame><draw:text-box><text:p>in a box</text:p></draw:text-box></draw:frame>",
                    "@<table:table-cell table:style-name=\"C\" office:value-type=\"float\" office:value=\"7\"><text:p>7</text:p></table:table-cell>",
                ],
            ),
            &["~~EUR 500~~ EUR 650 | 10⁶ m | 漢(かん) | x | ~~7~~\n", "a remark", "in a box"],
            &[],
        ),
        row(
            "white on black, and white that a condition colors",
            "seen.ods",
            book(&condition, "", &[white]),
            &["pale words"],
            &[],
        ),
        row(
            "white on black",
            "black.ods",
            book(
                &styles,
                "",
                &[
                    "@<table:table-cell table:style-name=\"B\"><text:p>pale words</text:p></table:table-cell>",
                ],
            ),
            &["pale words"],
            &[],
        ),
        hidden(
            "white and hidden words of a cell",
            "white.ods",
            book(&styles, "", &[white, white_day, &format!("{} seen", span("H", "gone words"))]),
            &["seen"],
            &["pale", "2026", "gone"],
        ),
        hidden(
            "white beside a number format of several parts",
            "map.ods",
            book(
                &format!(
                    "{styles}<number:number-style style:name=\"N\"><style:map style:condition=\"value()&gt;=0\" style:apply-style-name=\"P\"/></number:number-style>"
                ),
                "",
                &["seen", white],
            ),
            &["seen"],
            &["pale"],
        ),
        hidden(
            "hidden words that the value of their cell repeats",
            "value.ods",
            book(
                &styles,
                "",
                &[
                    "seen",
                    &format!(
                        "@<table:table-cell office:value-type=\"string\" office:string-value=\"gone words\"><text:p>{}</text:p></table:table-cell>",
                        span("H", "gone words")
                    ),
                ],
            ),
            &["seen"],
            &["gone"],
        ),
        hidden(
            "black words in a white cell",
            "spans.ods",
            book(
                &styles,
                "",
                &[
                    &white.replace("pale words", &format!("pale {}", span("K", "black"))),
                    &white_day.replace("22.11.26", &span("K", "22.11.26")),
                    &white_day.replace("22.11.26", &span("R", "22.11.26")).replace("2026", "2027"),
                ],
            ),
            &["black | 2026-11-22"],
            &["pale", "2027"],
        ),
        hidden(
            "the style of a column",
            "column.ods",
            book(&styles, column, &["seen", "pale words"]),
            &["seen"],
            &["pale"],
        ),
    ]
}
