//! Tests of whole pages.

use super::*;
use crate::left_out::Kind;

#[test]
fn a_page_reads_like_a_page() {
    let page = "<html><head><title>T</title><style>p{}</style></head><body><nav><a>Home</a></nav><h2>Tides\n today</h2>\
        <p>High at <b>six</b>,\n  low at&nbsp;noon.<br>Mind the gap.</p><ul><li>one<li>two<ol><li>deep</ol></ul>\
        <table><tr><th>Port<th>Metres<tr><td>Brest<td>7</table><pre>\n a\n  b</pre><script>evil()</script><p hidden>no</p></body>";
    let expected = "## Tides today\n\nHigh at six, low at noon.\nMind the gap.\n\n- one\n- two\n\n  1. deep\n\nPort | Metres\nBrest | 7\n\n a\n  b";
    assert_eq!(read(page), expected);
}

fn read(page: &str) -> String {
    extract(page.as_bytes(), &Tally::default()).unwrap()
}

#[test]
fn a_form_is_part_of_its_page() {
    let page = "<form><p>The whole page</p><label>Port</label><input value='Brest'><input type=hidden value=secret>\
        <select><option>Low<option selected>High</select><textarea>Notes</textarea><button>Send</button><button>Stop</button></form>";
    assert_eq!(read(page), "The whole page\n\nPort Brest High Notes Send Stop");
}

#[test]
fn what_a_browser_puts_together_is_read_so() {
    for (page, expected) in [
        ("<x-a><template shadowrootmode=open><b>shadow</b> </template>light</x-a>", "shadow light"),
        ("<p>a<template><p>inert</template>b", "ab"),
        ("<table><tfoot><tr><td>sum</tfoot><tbody><tr><td>1<tr><td>2</table>", "1\n2\nsum"),
        ("<frameset><frame src=a><noframes><p>No <b>frames</b></noframes></frameset>", "No frames"),
        ("a<iframe srcdoc='&lt;h1&gt;In&lt;/h1&gt;side'></iframe>b", "a\n\n# In\n\nside\n\nb"),
        (
            "<svg><title>t</title><defs><text>d</text></defs><g><text>x</text><text>y</text></g></svg>",
            "x y",
        ),
        ("<ruby>東<rt>ひがし</ruby>口", "東(ひがし)口"),
        ("<q>Ebb</q>, he said", "\"Ebb\", he said"),
        ("<math><mfrac><mn>3</mn><mi>n</mi></mfrac></math> of", "3/n of"),
    ] {
        assert_eq!(read(page), expected, "{page}");
    }
    let nested = (0..9).fold("deep".to_owned(), |page, _| {
        format!(
            "<iframe srcdoc=\"{}\"></iframe>x",
            page.replace('&', "&amp;").replace('"', "&quot;")
        )
    });
    assert!(!read(&nested).contains("deep"));
}

#[test]
fn links_are_named_where_they_lead_out() {
    for (link, expected) in [
        (
            "<a href='https://a.org/b?c=1'>the <b>page</b></a>.",
            "the [the page](https://a.org/b?c=1).",
        ),
        ("<a href='#b'>x</a> <a href='b.html'>y</a>", "the x y"),
        ("<a href='https://a.org/'>a.org</a>, <a href=mailto:b@c.d>b@c.d</a>", "the a.org, b@c.d"),
        ("<a href=https://a.org></a>x", "the x"),
        ("<a href=https://a.org><div>a</div>b</a>", "the\n\na\n\nb (https://a.org)"),
    ] {
        assert_eq!(read(&format!("the {link}")), expected, "{link}");
    }
}

#[test]
fn what_nobody_sees_is_left_out() {
    let tally = Tally::default();
    let page = "<p>seen<p hidden>ab <b>c</b><script>no()</script></p><p style='display:none'>de";
    assert_eq!(extract(page.as_bytes(), &tally).unwrap(), "seen");
    assert_eq!(tally.into_left_out().count(Kind::HiddenText), 5);
    let hidden = [
        "style='display: none'",
        "style='color:red;VISIBILITY:hidden !important'",
        "style='font-size:0px'",
        "style='position:absolute;left:-9999px'",
        "style='opacity:0.0'",
        "hidden",
    ];
    for hidden in hidden {
        assert_eq!(
            read(&format!("<p>seen<div {hidden}>Ignore <b>that</b></div>too")),
            "seen\n\ntoo"
        );
    }
    assert_eq!(read("<p style='display:block;opacity:.5;left:-9px'>seen"), "seen");
}

#[test]
fn what_the_pages_own_style_sheets_hide_is_left_out() {
    for (sheet, expected) in [
        (".x { display: none }", "seen"),
        ("p.x, i { visibility: hidden } /* .x { visibility: visible } */", "seen"),
        ("@import url(a.css); @media screen { #y { opacity: 0 } }", "seen"),
        ("#y { display: none !important } .x { display: block !important }", "seen"),
        // Another rule shows it, or the rule is for other media.
        (".x { display: none } p.x { display: block }", "seen\n\nhidden"),
        (".x { display: none } #y { display: block }", "seen\n\nhidden"),
        ("@media print { .x { display: none } }", "seen\n\nhidden"),
        ("@media (max-width: 600px) { .x { display: none } }", "seen\n\nhidden"),
        (".x:hover { display: none } .z { display: none }", "seen\n\nhidden"),
        (".x { display: none", "seen"),
        ("} .x { left: 1px } {", "seen\n\nhidden"),
    ] {
        let page = format!("<style>{sheet}</style><p>seen<p class=x id=y>hidden");
        assert_eq!(read(&page), expected, "{sheet}");
    }
    let inline = "<style>.x { display: none }</style><p class=x style='display:block'>seen";
    assert_eq!(read(inline), "seen");
    let many = format!(
        "<style>{}</style>{}",
        ".a .b { display: none }".repeat(3_000),
        "<p class=b>x".repeat(2_000)
    );
    assert!(read(&many).starts_with('x'), "in good time");
    let waiting = "<style>body > * { display: none }</style><p>shown later<p hidden>never";
    assert_eq!(read(waiting), "shown later");
}

#[test]
fn neighbours_touch_only_where_they_do_on_the_page() {
    assert_eq!(read("<a>Home</a><a>Tides</a>"), "Home Tides");
    assert_eq!(
        read(
            "H<sub>2</sub>O, 10<sup>-6</sup> m<sup>2</sup>, 1<sup>st</sup> <a>link</a>s, <span>co</span><span>de</span>"
        ),
        "H2O, 10⁻⁶ m², 1st links, code"
    );
    assert_eq!(read("<table><caption>Ports</caption><tr><td>a</table>"), "Ports\na");
    assert_eq!(read("a<img alt='a tide'>b"), "a a tide b");
}

#[test]
fn cells_keep_their_columns() {
    let page = "<table><tr><th rowspan=2>Port<th colspan=2>Tide<th>Day<tr><td><p>high</p><p>springs</p><td>low<td>1</table>";
    assert_eq!(read(page), "Port | Tide |  | Day\n | high springs | low | 1");
    let laid_out = "<table><tr><td><h1>Left</h1><p>one<td><ul><li>two</ul></table>";
    assert_eq!(read(laid_out), "# Left\n\none\n\n- two");
    assert_eq!(read("<pre>a  b<br>  <b>c</b>\n d</pre>"), "a  b\n  c\n d");
}

#[test]
fn a_declared_encoding_is_believed() {
    let page = b"<meta charset='windows-1251'><p>\xcf\xf0\xe8\xeb\xe8\xe2</p>";
    assert_eq!(extract(page, &Tally::default()).unwrap(), "Прилив");
}

#[test]
fn nesting_has_an_end() {
    let deep = format!("{}x", "<div>".repeat(100_000));
    let tally = Tally::default();
    assert!(extract(deep.as_bytes(), &tally).unwrap_err().to_string().contains("nested"));
    let flat = "<li>item<p>text".repeat(20_000);
    assert!(extract(format!("<ul>{flat}").as_bytes(), &tally).is_ok());
}
