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
        <select><option>Low<option selected>High</select><textarea>Notes</textarea><button>Send</button><button>Stop</button>\
        <input placeholder='Your mail'><input placeholder=no value=yes><textarea placeholder=Why></textarea></form>";
    assert_eq!(read(page), "The whole page\n\nPort Brest High Notes Send Stop Your mail yes Why");
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
        "style='scale:0'",
        "style='translate:-9999px 0'",
        "style='transform:rotateX(90deg)'",
        "style='position:absolute;inset-inline-start:-9999px'",
        "style='-webkit-text-fill-color:transparent'",
        "style='color:color(srgb 1 1 1)'",
        "style='color:red;background:red'",
        "style='color:darkslategray;background:#2f4f4f'",
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
        ("p::after { content: \"/*\" } .x { display: none }", "seen/*"),
        ("p { content: '\\'/*' } .x { display: none }", "seen"),
        ("p { background: url(a/*b.png) } .x { display: none }", "seen"),
        ("p { color: blue /* url( */ } /* \" */ .x { display: none }", "seen"),
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
    assert_eq!(read(waiting), "");
    assert_eq!(read(&format!("{waiting}<script>show()</script>")), "shown later");
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
fn styles_place_boxes_in_lines_or_on_their_own() {
    let pair = |outer: &str, inner: &str| {
        read(&format!(
            "<style>.x span {{ {inner} }}</style><div class=x style='{outer}'><span>a</span><span>b</span></div>"
        ))
    };
    for (outer, inner, expected) in [
        ("", "", "ab"),
        ("", "display:block", "a\nb"),
        ("", "display:list-item", "a\nb"),
        ("", "display:table-cell", "a b"),
        ("", "float:right", "a b"),
        ("", "display:inline-block; width:80px", "a b"),
        ("", "display:inline-block", "ab"),
        ("", "margin:0 20px", "a b"),
        ("", "margin:20px 0", "ab"),
        ("", "padding:2px 4px", "ab"),
        ("display:flex", "", "a b"),
        ("display:inline-grid", "display:block", "a b"),
    ] {
        assert_eq!(pair(outer, inner), expected, "{outer} {inner}");
    }
    let divs =
        |style: &str| read(&format!("<div style='{style}'>a</div><div style='{style}'>b</div>"));
    assert_eq!(divs("display:inline"), "ab");
    assert_eq!(divs("display:inline-block"), "a b");
    assert_eq!(read("<div style='display:flex'><div>a</div><div>b</div></div>"), "a\n\nb");
    assert_eq!(read("<table><tr><td style='display:block'>a<td>b</table>"), "a | b");
    assert_eq!(
        read("<h2><a style='display:block'>a</a></h2><ul><li><a style='display:block'>b</a></ul>"),
        "## a\n\n- b"
    );
}

#[test]
fn styles_change_the_case_of_letters() {
    let page = "<p style='text-transform:uppercase'>Paid <b style='text-transform:none'>at</b> <i style='text-transform:capitalize'>high tide</i>";
    assert_eq!(read(page), "PAID at High Tide");
}

#[test]
fn parts_of_a_table_stand_where_the_page_shows_them() {
    let head = "<table><tr><td>1<td>2</tr><thead><tr><th>A<th>B</thead></table>";
    assert_eq!(read(head), "A | B\n1 | 2");
    let low = "<table style='caption-side:bottom'><caption>Below</caption><tr><td>x</table>";
    assert_eq!(read(low), "x\nBelow");
}

#[test]
fn pages_and_files_shown_within_a_page_are_named() {
    let tally = Tally::default();
    let page = "a<iframe src='https://x.org/doc.html'>no</iframe><embed src=a.pdf><noembed>no</noembed><object data=b.pdf></object>\
        <object data=c.pdf>read</object><iframe src='about:blank'></iframe><iframe src=track width=1 height=0></iframe>";
    assert_eq!(extract(page.as_bytes(), &tally).unwrap(), "aread");
    let left_out = tally.into_left_out();
    let places: Vec<_> = left_out.iter().flat_map(|(_, count)| count.places.clone()).collect();
    assert_eq!(
        places,
        ["https://x.org/doc.html", "a.pdf", "b.pdf"].map(crate::left_out::Place::part)
    );
}

#[test]
fn formulas_of_scripts_are_read_once() {
    let tex = "<script type='math/tex'>E=mc^2</script>";
    assert_eq!(read(&format!("Energy {tex} holds.<script>no()</script>")), "Energy E=mc^2 holds.");
    let drawn = format!("<span class=MathJax_Preview></span><span class=MathJax>E=mc2</span>{tex}");
    assert_eq!(read(&drawn), "E=mc2");
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

#[test]
fn style_sheets_hide_in_any_notation() {
    let page = |sheet: &str| format!("<style>{sheet}</style><p>seen<p class='x y'>hidden");
    for sheet in [
        "<!-- .x { display: none } -->",
        ":root { --d: none } .x { display: var(--d) }",
        ".x { --d: none; display: var(--d, block) }",
        "p:is(.z, .x) { display: none }",
        "@media not print { .x { display: none } }",
        "@media tv, screen and (min-width: 600px) { .x { display: none } }",
        ".x { color: hsl(0, 0%, 100%) }",
        "@scope (body) { .x { display: none } }",
        ".z::before { content: '}' } .x { display: none }",
        ".x { d\\69splay: n\\6fne }",
        ".x { opacity: .01 }",
        ".x { margin-top: -9999px }",
        ".x { text-indent: 100%; white-space: nowrap; overflow: hidden }",
        ".x { mask-image: linear-gradient(transparent, transparent) }",
        "@layer a { .x { display: none } }",
        "@layer a, b; @layer b { .x { display: none } } @layer a { .x { display: block } }",
    ] {
        assert_eq!(read(&page(sheet)), "seen", "{sheet}");
    }
    for sheet in [
        "@supports not (display: grid) { .x { display: none } }",
        "@media (width < 600px) { .x { display: none } }",
        "@media (prefers-color-scheme: dark), (forced-colors: active), tv { .x { display: none } }",
        "@media (prefers-reduced-motion: reduce) { .x { opacity: 0 } }",
        "@media (min-width: 5000px) { .x { display: none } }",
        "@layer a, b; @layer b { .x { display: block } } @layer a { .x { display: none } }",
        "@layer a { .x { display: none } } .x { display: block }",
        ".x { display: block !important } @layer a { p.x { display: none } }",
        "@keyframes in { to { opacity: 1 } } .x { opacity: 0; animation: in 1s forwards }",
        ".x { clip: rect(0,0,0,0); left: -9999px }",
        ":root { --c: #000 } .y { --c: #fff } .x { color: var(--c) }",
        ":root { --c: #fff } .dark { --c: #000 } .x { color: var(--c) }",
        ".x::before { display: none }",
        ".x { background: url(data:image/svg+xml;a{) } .z { display: none }",
    ] {
        assert_eq!(read(&page(sheet)), "seen\n\nhidden", "{sheet}");
    }
    let shown = "<style>p[hidden] { display: block }</style><p>seen<p hidden>too<p popover>three";
    assert_eq!(read(shown), "seen\n\ntoo");
}

#[test]
fn drawings_hide_by_attributes() {
    let page = "<svg><text>seen</text><text display=none>a</text><text visibility=hidden>b</text>\
        <text opacity=0>c</text><g fill=none><text>d</text><text stroke=red>outline</text></g></svg>";
    assert_eq!(read(page), "seen outline");
}

#[test]
fn text_of_styles_is_read() {
    for (sheet, expected) in [
        (
            ".x::before { content: '\u{20ac} ' } .x:after { content: \" (\\2713)\" }",
            "\u{20ac} tide (\u{2713})",
        ),
        (".x::after { content: attr(id) / 'spoken' }", "tidei"),
        (".x::before { content: 'no'; display: none }", "tide"),
        (".x::before { content: '.'; visibility: hidden; height: 0 }", "tide"),
        (".x::before { content: 'no'; color: #fff }", "tide"),
        (".x::before { content: '\u{e001}' } .x::after { content: '' }", "tide"),
        ("p { counter-increment: n } .x::before { content: counter(n) '. ' }", "1. tide"),
        (
            "p { counter-reset: n 3 } .x::before { counter-increment: n; content: '\u{a7}' counter(n) ' ' }",
            "\u{a7}4 tide",
        ),
    ] {
        let page = format!("<style>{sheet}</style><p class=x id=i>tide</p>");
        assert_eq!(read(&page), expected, "{sheet}");
    }
    let tally = Tally::default();
    let page = "<style>p::before { content: counters(n, '.') }</style><p>tide";
    assert_eq!(extract(page.as_bytes(), &tally).unwrap(), "tide");
    assert_eq!(tally.into_left_out().count(Kind::UnreadParts), 1);
}

#[test]
fn lines_are_kept_where_a_style_says_so() {
    let pre_line =
        "<div style='white-space: pre-line'>one\n  two  three\n\nfour <b>five</b> six</div>";
    assert_eq!(read(pre_line), "one\ntwo three\n\nfour five six");
    let wrapped = "<style>.a { white-space: pre-wrap }</style><div class=a>\none\n  two</div>";
    assert_eq!(read(wrapped), "one\n  two");
    assert_eq!(read("<listing>\na\n b</listing><xmp><b>raw</b></xmp>"), "a\n b\n\n<b>raw</b>");
}

#[test]
fn linked_style_sheets_apply() {
    let page =
        b"<link rel=stylesheet href=a.css><p>seen<p class=x>hidden<p style='color:#fff'>white";
    let linked = |address: &str| (address == "a.css").then(|| ".x { display: none }".to_owned());
    assert_eq!(extract_linked(page, &Tally::default(), &linked).unwrap(), "seen");
    let missing = extract_linked(page, &Tally::default(), &|_| None).unwrap();
    assert_eq!(missing, "seen\n\nhidden\n\nwhite");
}

#[test]
fn a_tag_of_many_attributes_takes_little_time() {
    let many: String = (0..100_000).map(|at| format!(" a{at}=1")).collect();
    assert_eq!(read(&format!("<p{many}>tide</p>")), "tide");
}
