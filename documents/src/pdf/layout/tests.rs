//! Layouts made by hand.

use super::*;
use crate::limits::Limits;

/// Returns a line of letters of 10 points, each half an em wide.
pub(super) fn set(x: f64, y: f64, text: &str) -> Vec<Glyph> {
    (0_u32..)
        .zip(text.chars())
        .map(|(place, c)| {
            let x = x + f64::from(place) * 5.0;
            Glyph { text: c.to_string().into(), x: (x, x + 5.0), y, size: 10.0, turn: 0 }
        })
        .collect()
}

#[test]
fn columns_are_read_one_after_the_other_and_tables_row_by_row() {
    let mut page = set(100.0, 20.0, "A title over both of the columns of this page");
    for n in 0..5 {
        let y = 50.0 + f64::from(n) * 12.0;
        // In any order and with different baselines, as typesetting programs write lines.
        page.extend(set(320.0, y + 5.0, &format!("right line {n} of its column")));
        page.extend(set(50.0, y, &format!("left line {n} of its column")));
    }
    for n in 0..4 {
        let y = 150.0 + f64::from(n) * 12.0;
        page.extend(set(320.0, y, &format!("{n}.5 m")));
        page.extend(set(50.0, y, &format!("port {n}")));
    }
    let text = read(&page);
    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(lines[0], "A title over both of the columns of this page");
    assert_eq!(lines[1], "left line 0 of its column");
    assert_eq!(lines[5], "left line 4 of its column");
    assert_eq!(lines[6], "right line 0 of its column");
    assert_eq!(lines[10], "right line 4 of its column");
    assert_eq!(
        lines[11..],
        ["port 0 | 0.5 m", "port 1 | 1.5 m", "port 2 | 2.5 m", "port 3 | 3.5 m"]
    );
}

#[test]
fn words_divided_at_the_end_of_a_line_are_made_whole() {
    let page = [
        set(0.0, 0.0, "the reg-"),
        set(0.0, 12.0, "ular tide"),
        set(0.0, 24.0, "A-"),
        set(0.0, 36.0, "B"),
    ]
    .concat();
    assert_eq!(read(&page), "the regular tide\nA-\nB");
}

#[test]
fn a_hyphen_of_a_word_stays_at_the_end_of_a_line() {
    let read = |lines: &[&str]| {
        let place = |(at, line): (u32, &&str)| set(0.0, f64::from(at) * 12.0, line);
        super::tests::read(&(0..).zip(lines).flat_map(place).collect::<Vec<_>>())
    };
    // The page has the word elsewhere, or another hyphen in it.
    assert_eq!(
        read(&["a well-known tide", "is well-", "known here"]),
        "a well-known tide\nis well-known here"
    );
    assert_eq!(read(&["a state-of-the-", "art gauge"]), "a state-of-the-art gauge");
    assert_eq!(read(&["an “off-", "the-shelf” gauge"]), "an “off-the-shelf” gauge");
    // Words are divided by another sign.
    assert_eq!(read(&["a reg\u{2010}", "ular, long-", "term tide"]), "a regular, long-term tide");
    assert_eq!(read(&["a reg-", "ular tide, re-", "gular"]), "a regular tide, regular");
}

#[test]
fn hebrew_is_a_line_as_it_is_read() {
    // Visual order: the first letter stands at the right.
    assert_eq!(read(&set(0.0, 0.0, "םולש")), "שלום");
    // Reading order, with spaces behind words, which is at their left.
    let letters = (0_u32..).zip("שלום עולם".chars());
    let drawn: Vec<Glyph> = letters
        .map(|(place, c)| {
            let x = 200.0 - f64::from(place) * 5.0;
            Glyph { text: c.to_string().into(), x: (x, x + 5.0), y: 0.0, size: 10.0, turn: 0 }
        })
        .collect();
    assert_eq!(read(&drawn), "שלום עולם");
    let mut mixed = set(50.0, 0.0, "The words");
    mixed.extend(drawn);
    // The space behind the run belongs to the text around it.
    mixed.extend(set(205.0, 0.0, " are a greeting that is known"));
    assert_eq!(read(&mixed), "The words שלום עולם are a greeting that is known");
    // Two letters in one glyph.
    let mut pair = set(0.0, 0.0, "ם");
    pair.push(Glyph { text: "לו".into(), x: (5.0, 10.0), y: 0.0, size: 10.0, turn: 0 });
    pair.extend(set(10.0, 0.0, "ש"));
    assert_eq!(read(&pair), "שלום");
}

/// Returns a page of rows `step` points apart, whose cells begin at `columns`.
fn table(rows: &[&[&str]], columns: &[f64], step: f64) -> Vec<Glyph> {
    let mut page = Vec::new();
    let mut y = 100.0;
    for row in rows {
        for (cell, x) in row.iter().zip(columns) {
            page.extend(set(*x, y, cell));
        }
        y += step;
    }
    page
}

pub(super) fn read(page: &[Glyph]) -> String {
    page_text(page, &Rules::default(), &PageBudget::from_limits(&Limits::default()))
}

#[test]
fn cells_of_text_stand_in_their_row() {
    let page = table(
        &[
            &["Name", "Address", "Telephone"],
            &["Ada of the harbour", "7 Long Street, 12340 Brest", "number 020 1"],
            &["Bob of the harbour", "14 Long Street, 1234 Dover", ""],
            &["Cy of the big harbour", "", "number 020 3"],
            &["Dee of the harbour", "21 Long Street, 1234 Cork", "number 020 4"],
        ],
        &[50.0, 190.0, 380.0],
        18.0,
    );
    assert_eq!(
        read(&page),
        "Name | Address | Telephone\n\
         Ada of the harbour | 7 Long Street, 12340 Brest | number 020 1\n\
         Bob of the harbour | 14 Long Street, 1234 Dover |\n\
         Cy of the big harbour |  | number 020 3\n\
         Dee of the harbour | 21 Long Street, 1234 Cork | number 020 4"
    );
}

#[test]
fn a_long_cell_behind_the_first_one_ends_no_table() {
    let page = table(
        &[
            &["1 May", "Rent", "", "12.00", "88.00"],
            &["2 May", "Salary", "50.00", "", "138.00"],
            &["", "Transfer to a savings account", "", "", ""],
            &["3 May", "Shop", "9.00", "", "129.00"],
            &["4 May", "Shop", "8.00", "", "121.00"],
        ],
        &[50.0, 110.0, 280.0, 340.0, 400.0],
        18.0,
    );
    assert_eq!(
        read(&page),
        "1 May | Rent |  | 12.00 | 88.00\n\
         2 May | Salary | 50.00 |  | 138.00\n \
         | Transfer to a savings account |  |  |\n\
         3 May | Shop | 9.00 |  | 129.00\n\
         4 May | Shop | 8.00 |  | 121.00"
    );
}

/// Rows of a glossary, whose cells have several lines.
const GLOSSARY: [[&str; 2]; 6] = [
    ["Buyer", "means the company that buys the goods"],
    ["Confidential", "means all that one of the parties"],
    ["information", "gives to the other"],
    ["Goods", "means what is sold"],
    ["Seller", "means the company that delivers the"],
    ["", "goods under this agreement"],
];
const READ: &str = "Buyer | means the company that buys the goods\n\
     Confidential information | means all that one of the parties gives to the other\n\
     Goods | means what is sold\n\
     Seller | means the company that delivers the goods under this agreement";

#[test]
fn lines_of_a_cell_are_told_from_rows_by_the_space_between() {
    let (mut page, mut y) = (Vec::new(), 100.0);
    for (row, above) in GLOSSARY.iter().zip([0.0, 18.0, 12.0, 18.0, 18.0, 12.0]) {
        y += above;
        page.extend(set(50.0, y, row[0]));
        page.extend(set(130.0, y, row[1]));
    }
    assert_eq!(read(&page), READ);
}

#[test]
fn lines_of_a_cell_are_told_from_rows_by_their_words_where_all_are_close() {
    let rows: Vec<&[&str]> = GLOSSARY.iter().map(<[_; 2]>::as_slice).collect();
    let page = table(&rows, &[50.0, 130.0], 12.0);
    assert_eq!(read(&page), READ);
    // A word that had room in the line before begins a row.
    let page = table(
        &[&["Fruit", "apples of all kinds", "3"], &["", "pears", "4"], &["Fish", "cod", "5"]],
        &[50.0, 130.0, 300.0],
        12.0,
    );
    assert_eq!(read(&page), "Fruit | apples of all kinds | 3\n | pears | 4\nFish | cod | 5");
}

#[test]
fn columns_of_text_on_common_baselines_are_read_one_after_the_other() {
    let left = "the tide turns twice a day and\nnobody waits for it in all the\nsmall harbours that count each\nship before the night falls on";
    let right = "grey water of an otherwise so\nuneventful coast whose people\ntell each other stories while\nthey wait for the next spring";
    let mut page = Vec::new();
    for (y, (a, b)) in (0_u32..).zip(left.lines().zip(right.lines())) {
        let y = 100.0 + f64::from(y) * 12.0;
        page.extend(set(50.0, y, a));
        page.extend(set(220.0, y, b));
    }
    assert_eq!(read(&page), format!("{left}\n{right}"));
    // A table in one column of text does not include the other column.
    for (y, row) in [(148.0, ["Port", "Metres"]), (160.0, ["Brest", "7"]), (172.0, ["Dover", "6"])]
    {
        page.extend(set(50.0, y, row[0]));
        page.extend(set(120.0, y, row[1]));
        page.extend(set(220.0, y, "and so on and so forth it goes"));
    }
    let text = read(&page);
    assert!(
        text.starts_with(&format!("{left}\nPort | Metres\nBrest | 7\nDover | 6\n{right}")),
        "{text}"
    );
}

#[test]
fn paragraphs_in_two_languages_stand_beside_each_other() {
    let mut page = Vec::new();
    for n in 0..4 {
        let y = 100.0 + f64::from(n) * 36.0;
        for (line, (a, b)) in (0_u32..).zip([
            ("The parties agree on this clause", "Die Parteien vereinbaren diese"),
            ("and on all that follows", "Klausel und was daraus folgt"),
        ]) {
            page.extend(set(50.0, y + f64::from(line) * 12.0, a));
            page.extend(set(240.0, y + f64::from(line) * 12.0, b));
        }
    }
    let row = "The parties agree on this clause and on all that follows | Die Parteien vereinbaren diese Klausel und was daraus folgt";
    assert_eq!(read(&page), [row; 4].join("\n"));
}

#[test]
fn paragraphs_of_two_columns_that_are_equally_long_are_no_rows() {
    let left = [
        "of the many words here",
        "that the tide washes up",
        "each day and each night",
        "and takes again.",
    ];
    let right = [
        "while nobody waits for",
        "it and the small harbour",
        "counts its ships before",
        "night falls.",
    ];
    let mut page = Vec::new();
    for paragraph in 0..3 {
        for (line, (a, b)) in (0_u32..).zip(left.iter().zip(right)) {
            let y = 100.0 + f64::from(paragraph) * 60.0 + f64::from(line) * 12.0;
            page.extend(set(50.0, y, a));
            page.extend(set(240.0, y, b));
        }
    }
    let columns = [left, right].map(|column| [column.join("\n").as_str(); 3].join("\n\n"));
    assert_eq!(read(&page), columns.join("\n"));
}

#[test]
fn marks_of_a_list_and_gaps_of_justified_lines_are_no_cells() {
    let page = table(
        &[&["(a)", "the tide turns"], &["", "twice a day"], &["(b)", "and nobody waits"]],
        &[50.0, 90.0],
        12.0,
    );
    assert_eq!(read(&page), "(a) the tide turns\ntwice a day\n(b) and nobody waits");
    let mut page = set(50.0, 100.0, "normally    used    for");
    page.extend(set(50.0, 112.0, "all    personal    use"));
    page.extend(set(50.0, 124.0, "or family of someone"));
    let text = read(&page);
    assert!(!text.contains(" |  |") && text.lines().count() == 3, "{text}");
}

#[test]
fn columns_of_text_whose_lines_are_not_beside_each_other_are_no_table() {
    let mut page = Vec::new();
    for n in 0..8 {
        let y = 100.0 + f64::from(n) * 12.0;
        page.extend(set(50.0, y, "a short line"));
        page.extend(set(330.0, y, "of some"));
        page.extend(set(180.0, y + 5.0, "and others"));
        page.extend(set(430.0, y + 5.0, "of more"));
    }
    assert!(!read(&page).contains("|  |"), "{}", read(&page));
}

#[test]
fn the_last_lines_of_a_column_are_no_cells() {
    // They stand at the top of the page, and the text before them continues beside them.
    let mut page = Vec::new();
    for n in 0..12 {
        let text = if n < 3 { "a heading" } else { "lines of a text that goes on" };
        page.extend(set(50.0, 100.0 + f64::from(n) * 12.0, text));
    }
    for (y, text) in [
        (100.0, "the end of what is written in"),
        (112.0, "the columns of this page and"),
        (124.0, "no more."),
    ] {
        page.extend(set(230.0, y, text));
    }
    let text = read(&page);
    assert!(!text.contains('|') && text.ends_with("this page and\nno more."), "{text}");
}

#[test]
fn a_page_of_many_cells_takes_no_time() {
    let row: Vec<String> = (0..100).map(|n| n.to_string()).collect();
    let row: Vec<&str> = row.iter().map(String::as_str).collect();
    let columns: Vec<f64> = (0..100).map(|n| f64::from(n) * 30.0).collect();
    for step in [12.0, 24.0] {
        let page = table(&[row.as_slice(); 200], &columns, step);
        let start = std::time::Instant::now();
        assert_eq!(read(&page).matches(" | ").count(), 99 * 200);
        assert!(start.elapsed() < std::time::Duration::from_secs(20), "{:?}", start.elapsed());
    }
}
