//! PDF pages with letters of several sizes, and with words that are drawn as a pattern.

use super::{
    Row, hidden,
    pdf::{line, page, stream},
    row,
};

const TEXT: [&str; 5] = [
    "The committee reviewed the annual report and found",
    "that the figures of the second quarter were higher",
    "than those of the first one by about four percent,",
    "which nobody had expected at the start of the year,",
    "and asks the board to approve the budget for it.",
];

const NOTE: [&str; 6] = [
    "See also the report",
    "of the harbour office",
    "for the year before,",
    "where a like question",
    "was answered at first",
    "in another way.",
];

const LONG_TEXT: [&str; 8] = [
    "The tide gauge of the harbour was read each hour",
    "by the clerk, who wrote what it showed into a book",
    "and sent a copy of the page to the office in town,",
    "where nobody looked at it until the flood of March",
    "had covered the quay and the lower storehouses, and",
    "the board asked why it had not been told about it.",
    "Since then the gauge is read by a machine, and what",
    "it shows is sent to all who want to know about it.",
];

/// Lines of a size below each other.
fn lines(place: (f64, f64), step: f64, size: f64, lines: &[&str]) -> String {
    let each = |(at, text): (f64, &&str)| {
        let y = place.1 - at * step;
        format!("BT /F1 {size} Tf {} {y} Td ({text}) Tj ET\n", place.0)
    };
    (0_u32..).map(f64::from).zip(lines).map(each).collect()
}

/// A large word, and lines of 12 points beside it.
fn beside(word: &str, size: f64, y: f64, x: f64, all: &[&str]) -> String {
    lines((72.0, y), 0.0, size, &[word]) + &lines((x, 700.0), 14.0, 12.0, all)
}

/// A page whose area is filled with a pattern of words.
fn pattern(kind: &str, fill: &str) -> Vec<u8> {
    let cell = stream(
        &format!(
            "/Type /Pattern /PatternType 1 {kind} /TilingType 1 /BBox [0 0 200 40] /XStep 200 /YStep 40 /Matrix [1 0 0 1 100 500] /Resources << /Font << /F1 5 0 R >> >>"
        ),
        "BT /F1 12 Tf 10 20 Td (tiled words) Tj ET",
    );
    let pdf = page(&(line(72, 700, "plain words") + fill), &["null".to_owned(), cell]);
    let resources = "/Pattern << /P 7 0 R >> /ColorSpace << /C [/Pattern /DeviceRGB] >> /ExtGState";
    String::from_utf8(pdf).unwrap().replacen("/ExtGState", resources, 1).into_bytes()
}

pub(super) fn rows() -> Vec<Row> {
    let text = lines((72.0, 700.0), 14.0, 11.0, &TEXT);
    let right = text.clone() + &lines((420.0, 698.0), 9.0, 7.0, &NOTE);
    let left = lines((60.0, 697.0), 9.0, 7.0, &NOTE) + &lines((160.0, 700.0), 14.0, 11.0, &TEXT);
    let caption = text.clone() + &lines((420.0, 672.0), 10.0, 8.0, &NOTE[..2]);
    let marked =
        text + &lines((416.0, 701.0), 0.0, 4.5, &["1"]) + &lines((420.0, 698.0), 9.0, 7.0, &NOTE);
    let table: String = (0_u32..)
        .map(f64::from)
        .zip([
            "Dues of the harbour for a day",
            "Water as the meter shows it",
            "Pilot and tugs at departure",
        ])
        .map(|(at, label)| {
            lines((72.0, 700.0 - 20.0 * at), 0.0, 12.0, &[label])
                + &lines((300.0, 701.0 - 20.0 * at), 0.0, 8.0, &["paid at the end of the stay"])
        })
        .collect();
    let whole: &[&str] = &[
        "annual report and found\nthat the figures of the second quarter were higher\nthan those of the first one by about four percent,\nwhich nobody had expected at the start of the year,\nand asks",
        "See also the report\nof the harbour office\nfor the year before,\nwhere a like question\nwas answered at first\nin another way.",
    ];
    let prose = lines((60.0, 700.0), 13.0, 10.0, &LONG_TEXT);
    // Words of a drawing, each on a baseline of its own.
    let drawn: String = (0_u32..)
        .map(f64::from)
        .zip(["gauge", "quay", "high", "low", "flood", "ebb", "river", "sea"])
        .map(|(at, word)| {
            let x = if at % 2.0 == 0.0 { 340.0 } else { 430.0 };
            lines((x, 702.5 - 12.4 * at), 0.0, 10.0, &[word])
        })
        .collect();
    let described: String = (0_u32..)
        .map(f64::from)
        .zip(["12.50", "7.25"])
        .map(|(at, value)| {
            let y = 700.0 - 120.0 * at;
            lines((60.0, y), 13.0, 10.0, &LONG_TEXT[..6]) + &lines((400.0, y), 0.0, 10.0, &[value])
        })
        .collect();
    let initial = [
        "he tide turns twice a day and",
        "nobody waits for it while small",
        "harbours count their ships",
        "before night falls over them",
    ];
    vec![
        row("a note in small letters", "right.pdf", page(&right, &[]), whole, &[" | "]),
        row("a note in small letters", "left.pdf", page(&left, &[]), whole, &[" | "]),
        row("a note in small letters", "marked.pdf", page(&marked, &[]), &whole[..1], &[" | "]),
        row(
            "a caption beside lines",
            "caption.pdf",
            page(&caption, &[]),
            &[whole[0], "See also the report\nof the harbour office"],
            &[" | "],
        ),
        row(
            "cells in small letters",
            "cells.pdf",
            page(&table, &[]),
            &["Water as the meter shows it | paid at the end of the stay"],
            &[],
        ),
        row(
            "words of a drawing beside text",
            "drawing.pdf",
            page(&(prose + &drawn), &[]),
            &[
                "each hour\nby the clerk, who wrote what it showed into a book\nand sent a copy of the page to the office in town,\nwhere",
                "gauge",
                "sea",
            ],
            &[" | "],
        ),
        row(
            "values beside long descriptions",
            "described.pdf",
            page(&described, &[]),
            &["each hour 12.50\nby the clerk", "each hour 7.25\nby the clerk"],
            &[],
        ),
        row(
            "a first letter of four lines",
            "four.pdf",
            page(&beside("T", 70.0, 658.0, 120.0, &initial), &[]),
            &[
                "The tide turns twice a day and\nnobody waits for it while small\nharbours count their ships\nbefore night falls over them",
            ],
            &[],
        ),
        row(
            "a first letter behind a quotation mark",
            "quoted.pdf",
            page(&beside("\\223T", 36.0, 672.0, 112.0, &initial[..3]), &[]),
            &["“The tide turns twice a day and\nnobody waits for it while small\nharbours"],
            &[],
        ),
        row(
            "a large number beside lines",
            "number.pdf",
            page(
                &beside(
                    "85%",
                    40.0,
                    680.0,
                    156.0,
                    &["of those who were asked", "like the quay as it is"],
                ),
                &[],
            ),
            &["85% of those who were asked\nlike the quay as it is"],
            &[],
        ),
        row(
            "a large number far from its lines",
            "far.pdf",
            page(
                &beside(
                    "85%",
                    40.0,
                    680.0,
                    190.0,
                    &["of those who were asked", "like the quay as it is"],
                ),
                &[],
            ),
            &["85% of those who were asked\nlike the quay as it is"],
            &[],
        ),
        row(
            "large numbers before two small lines each",
            "pairs.pdf",
            page(
                &[
                    (72.0, "85%", "of those asked", "like the quay"),
                    (280.0, "12%", "of the ships", "are small"),
                ]
                .map(|(x, number, first, second)| {
                    lines((x, 700.0), 0.0, 24.0, &[number])
                        + &lines((x + 78.0, 706.0), 12.0, 8.0, &[first, second])
                })
                .concat(),
                &[],
            ),
            &["85% of those asked | 12% | of the ships\nlike the quay |  | are small"],
            &[],
        ),
        row(
            "a first letter that is a word, before a space",
            "word.pdf",
            page(
                &beside("A", 44.0, 672.0, 106.0, &[" tide turns twice a day", "and nobody waits"]),
                &[],
            ),
            &["A tide turns twice a day\nand nobody waits"],
            &[],
        ),
        row(
            "a first letter that is a word, before a word of the page",
            "known.pdf",
            page(
                &beside("A", 44.0, 672.0, 106.0, &["tide turns twice a day", "and no tide waits"]),
                &[],
            ),
            &["A tide turns twice a day\nand no tide waits"],
            &[],
        ),
        row(
            "a first letter of a word of the page",
            "about.pdf",
            page(
                &beside(
                    "A",
                    44.0,
                    672.0,
                    106.0,
                    &["way from the quay, far", "away, the way is long"],
                ),
                &[],
            ),
            &["Away from the quay, far\naway, the way is long"],
            &[],
        ),
        row(
            "a title of two large words beside lines",
            "title.pdf",
            page(
                &beside(
                    "Annual Report",
                    36.0,
                    680.0,
                    310.0,
                    &["of the harbour office of", "Brest and of the quays"],
                ),
                &[],
            ),
            &["Annual Report"],
            &[],
        ),
        row(
            "words of a pattern",
            "pattern.pdf",
            pattern("/PaintType 1", "/Pattern cs /P scn 100 480 420 100 re f"),
            &["plain words", "tiled words"],
            &["tiled words\ntiled words"],
        ),
        row(
            "words of a pattern without a color",
            "stencil.pdf",
            pattern("/PaintType 2", "/C cs 0 0 1 /P scn 100 500 200 40 re f"),
            &["plain words", "tiled words"],
            &[],
        ),
        hidden(
            "a part of a pattern without its words",
            "part.pdf",
            pattern("/PaintType 1", "/Pattern cs /P scn 250 500 40 40 re f"),
            &["plain words"],
            &["tiled"],
        ),
        hidden(
            "a clear pattern",
            "clear.pdf",
            pattern("/PaintType 1", "/G gs /Pattern cs /P scn 100 500 200 40 re f"),
            &["plain words"],
            &["tiled"],
        ),
    ]
}
