//! PDF pages that would draw forever end soon, and lose only themselves.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs, reason = "a test")]

mod common;

use std::{
    fmt::Write as _,
    time::{Duration, Instant},
};

use common::pdf_of;
use tidegate_documents::{Extracted, Limits, Unreadable, extract, left_out::Kind};

fn stream(entries: &str, content: &str) -> String {
    format!("<< {entries} /Length {} >>\nstream\n{content}\nendstream", content.len())
}

/// Makes two pages. The first has this content and these resources; further objects begin at number
/// 8.
fn two_pages(content: &str, resources: &str, more: &[String]) -> Vec<u8> {
    let page = |content: u32, resources: &str| {
        format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {content} 0 R /Resources << {resources} >> >>"
        )
    };
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Count 2 /Kids [3 0 R 4 0 R] >>".to_owned(),
        page(5, resources),
        page(6, "/Font << /F1 7 0 R >>"),
        stream("", content),
        stream("", "BT /F1 12 Tf 72 700 Td (the page behind it) Tj ET"),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
            .to_owned(),
    ];
    objects.extend(more.iter().cloned());
    pdf_of(&objects, "")
}

/// Makes twelve forms, each of which draws the next one ten times; the last one draws `what`.
fn forms(what: &str) -> Vec<String> {
    let form = |number: usize| {
        let next = number + 9;
        let (resources, content) = match number {
            12 => (String::new(), what.to_owned()),
            _ => (format!("/XObject << /X {next} 0 R >>"), "/X Do ".repeat(10)),
        };
        stream(
            &format!(
                "/Type /XObject /Subtype /Form /BBox [0 0 600 700] /Resources << {resources} >>"
            ),
            &content,
        )
    };
    (0..=12).map(form).collect()
}

fn read(bytes: &[u8], time: Duration) -> Result<Extracted, Unreadable> {
    let start = Instant::now();
    let read = extract(bytes, "a.pdf", &Limits { time, ..Limits::default() });
    assert!(start.elapsed() < time, "took {:?}", start.elapsed());
    read
}

fn costs_itself_alone(bytes: &[u8]) {
    let read = read(bytes, Duration::from_secs(20)).unwrap();
    assert_eq!(read.text, "the page behind it");
    assert_eq!(read.left_out.count(Kind::UnreadPages), 1);
    assert_eq!(read.left_out.pages(), [1]);
}

#[test]
fn forms_that_draw_forms_cost_their_page() {
    let resources = "/XObject << /X 8 0 R >>";
    costs_itself_alone(&two_pages("/X Do", resources, &forms("0 0 9 9 re f")));
    costs_itself_alone(&two_pages("/X Do", resources, &forms("")));
}

/// Makes a pattern, object 8, that covers the page's top left corner.
fn pattern(resources: &str, content: &str) -> String {
    stream(
        &format!(
            "/Type /Pattern /PatternType 1 /PaintType 1 /TilingType 1 /BBox [0 0 200 40] /XStep 200 /YStep 40 /Matrix [1 0 0 1 100 500] /Resources << {resources} >>"
        ),
        content,
    )
}

#[test]
fn a_pattern_that_is_painted_with_itself_ends() {
    let paint = "/Pattern cs /P scn 0 0 200 40 re f";
    let content = "/Pattern cs /P scn 100 500 200 40 re f";
    let more = [pattern("/Pattern << /P 8 0 R >>", paint)];
    let bytes = two_pages(content, "/Pattern << /P 8 0 R >>", &more);
    let text = read(&bytes, Duration::from_secs(20)).unwrap().text;
    assert_eq!(text, "the page behind it");
}

#[test]
fn a_pattern_of_forms_that_draw_forms_costs_its_page() {
    let mut more = forms("");
    more.insert(0, pattern("/XObject << /X 9 0 R >>", "/X Do"));
    // The pattern takes the place of the first form, which draws the second.
    more.remove(1);
    let content = "/Pattern cs /P scn 100 500 200 40 re f";
    costs_itself_alone(&two_pages(content, "/Pattern << /P 8 0 R >>", &more));
}

#[test]
fn a_letter_that_stands_for_a_book_costs_its_page() {
    let mut table =
        "begincmap 1 begincodespacerange <00> <FF> endcodespacerange 1 beginbfchar <41> <"
            .to_owned();
    for _ in 0..60_000 {
        write!(table, "0041").unwrap();
    }
    table.push_str("> endbfchar endcmap");
    let font = format!(
        "<< /Type /Font /Subtype /Type1 /BaseFont /F /FirstChar 0 /LastChar 255 /Widths [{}] /ToUnicode 9 0 R >>",
        "500 ".repeat(256)
    );
    let content = format!("BT /F2 12 Tf 72 700 Td {} ET", "(A) Tj ".repeat(100_000));
    costs_itself_alone(&two_pages(&content, "/Font << /F2 8 0 R >>", &[font, stream("", &table)]));
}

#[test]
fn a_page_of_numbers_costs_itself_alone() {
    let mut content = "BT /F1 4 Tf\n".to_owned();
    for row in 0..700 {
        writeln!(content, "1 0 0 1 10 {} Tm", 1 + row).unwrap();
        for column in 0..60 {
            writeln!(content, "1 0 0 1 {} {} Tm ({}) Tj", 10 + column * 10, 1 + row, row % 10)
                .unwrap();
        }
    }
    content.push_str("ET");
    let bytes = two_pages(&content, "/Font << /F1 7 0 R >>", &[]);
    let text = read(&bytes, Duration::from_secs(60)).unwrap().text;
    assert!(text.ends_with("the page behind it"), "{}", text.len());
}

#[test]
fn a_document_of_such_a_page_alone_says_so() {
    let whole = two_pages("/X Do", "/XObject << /X 8 0 R >>", &forms("0 0 9 9 re f"));
    let alone = String::from_utf8(whole).unwrap().replace("[3 0 R 4 0 R]", "[3 0 R 3 0 R]");
    let error = read(alone.as_bytes(), Duration::from_secs(60)).unwrap_err();
    assert!(error.to_string().contains("draw without end"), "{error}");
}
