//! Symbol fonts and hidden text, as stated by styles and runs.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs, reason = "a test")]

mod common;

use common::{package, pptx};
use tidegate_documents::{Limits, extract};

fn read(bytes: &[u8], name: &str) -> String {
    extract(bytes, name, &Limits::default()).unwrap().text
}

#[test]
fn of_slides() {
    let run =
        |fonts: &str, text: &str| format!("<a:r><a:rPr>{fonts}</a:rPr><a:t>{text}</a:t></a:r>");
    let runs = [
        run("", "5 "),
        run("<a:sym typeface=\"Symbol\"/>", "&#xF06D;g "),
        run("<a:latin typeface=\"Symbol\"/>", "m "),
        run("<a:latin typeface=\"Arial\"/><a:sym typeface=\"Wingdings\"/>", "m &#xF0FE; &#xF0FF;"),
        run("<a:latin typeface=\"Wingdings\"/>", "\u{fe}"),
        run("", " 10"),
        run("", "6").replace("<a:rPr>", "<a:rPr baseline=\"30000\">"),
    ];
    let mut parts = pptx();
    let slide = parts.iter_mut().find(|(name, _)| name.ends_with("slide2.xml")).unwrap();
    slide.1 = format!(
        "<p:sld xmlns:p=\"p\" xmlns:a=\"a\"><p:sp><a:p>{}</a:p></p:sp></p:sld>",
        runs.concat()
    )
    .into();
    let text = read(&package(&parts), "a.pptx");
    assert!(text.contains("\n5 µg µ m ☑ \u{fffd}☑ 10⁶\n"), "{text}");
}

#[test]
fn of_open_documents() {
    let style = |family: &str, name: &str, base: &str, properties: &str| {
        format!(
            "<style:style style:family=\"{family}\" style:name=\"{name}\" style:parent-style-name=\"{base}\">\
             <style:text-properties {properties}/></style:style>"
        )
    };
    let span = |style: &str, text: &str| {
        format!("<text:span text:style-name=\"{style}\">{text}</text:span>")
    };
    let styles = [
        "<style:font-face style:name=\"Wingdings1\" svg:font-family=\"'Wingdings'\"/>".to_owned(),
        style("text", "T1", "", "style:font-name=\"Symbol\""),
        style("text", "T2", "T1", "fo:font-weight=\"bold\""),
        style("text", "T3", "", "style:font-name=\"Wingdings1\""),
        style("text", "T4", "", "text:display=\"none\""),
        style("text", "T5", "", "fo:font-family=\"Arial\""),
        style("text", "T6", "", "style:text-position=\"33% 58%\""),
        style("text", "T7", "", "style:text-position=\"sub 58%\""),
        style("paragraph", "T5", "", "fo:font-family=\"Symbol\""),
    ];
    let body = format!(
        "<text:p>5 {}g {} {}{} 10{}{}.</text:p><text:p text:style-name=\"T5\">m {}</text:p>",
        span("T1", "&#xF06D;"),
        span("T2", &format!("m{}", span("T3", "&#xF0FE;"))),
        span("T4", "unseen"),
        span("none", "seen"),
        span("T6", "6"),
        span("T7", "7"),
        span("T5", "m"),
    );
    let content = format!(
        "<c><office:automatic-styles>{}</office:automatic-styles><office:body><office:text>{body}</office:text></office:body></c>",
        styles.concat()
    );
    let parts = vec![
        ("mimetype", "application/vnd.oasis.opendocument.text".into()),
        ("content.xml", content.into()),
    ];
    assert_eq!(read(&package(&parts), "a.odt"), "5 µg µ☑ seen 10⁶₇.\nµ m");
}
