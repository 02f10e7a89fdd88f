//! HTML pages.

use super::{Row, hidden, row, unread};

fn page(head: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html><html><head><meta charset=utf-8>{head}</head><body>{body}</body></html>"
    )
}

pub(crate) fn rows() -> Vec<Row> {
    let of = |body: &str| page("", body);
    let styled = |sheet: &str, body: &str| page(&format!("<style>{sheet}</style>"), body);
    let tfoot = "<table><thead><tr><th>Port<tfoot><tr><td>sum<tbody><tr><td>Brest</table>";
    let frames =
        "<html><frameset><frame src=a><noframes><p>No <b>frames</b></noframes></frameset></html>";
    let on_white = "<p>seen<p style='color:#fff'>white<p style='color:white;background:#fff'>on white<div style='background:#000'><b style='color:#fff'>on black</b></div>\
        <table bgcolor=navy><tr><td><font color=white>in old mail</font></table><div style='background-image:url(a.png)'><i style='color:white'>on a picture</i></div>";
    let many = |one: &str| one.repeat(2_100);
    let drawn = format!("<p>beside</p><svg>{}</svg>", many("<path d='M0 0'/>"));
    let computed = format!(
        "<p>beside</p><script>{}</script><!--{}-->",
        many("if(i<n){}"),
        many("<w:LsdException/>")
    );
    let deep = format!("<p>beside</p><iframe srcdoc='{}'></iframe>", many("<div>"));
    let rules = "*{color:red}".repeat(1_000) + ".x{display:none}";
    let doubled = format!("a{{{}", format!("{}{{", "&".repeat(100)).repeat(6));
    vec![
        row("many shapes of a drawing", "a.html", of(&drawn), &["beside"], &[]),
        row("signs in scripts and comments", "a.html", of(&computed), &["beside"], &[]),
        unread("a page within that is too deep", "a.html", of(&deep), &["beside"]),
        unread(
            "more rules than are looked at",
            "a.html",
            styled(&rules, &format!("<p>seen{}", "<b>b</b>".repeat(1_001))),
            &["seen"],
        ),
        unread("rules that double each other", "a.html", styled(&doubled, "<p>seen"), &["seen"]),
        row(
            "a page in eight bits that says it has sixteen",
            "a.html",
            b"<html><meta charset=utf-16><p>caf\xe9 cr\xe8me, d\xe9j\xe0 vu".to_vec(),
            &["caf\u{e9} cr\u{e8}me"],
            &[],
        ),
        row(
            "main is hidden from listeners",
            "a.html",
            of("<main aria-hidden=true><p>article</main><div role=dialog>cookies</div>"),
            &["article"],
            &[],
        ),
        row("struck text", "a.html", of("<p>Fee <s>500</s> 650"), &["~~500~~ 650"], &[]),
        row(
            "struck by a style",
            "a.html",
            styled(
                ".old{text-decoration:line-through red}",
                "<p>Fee <span class=old>500</span> 650 <b style='text-decoration-line:line-through'>700</b>",
            ),
            &["~~500~~ 650 ~~700~~"],
            &[],
        ),
        row(
            "formulas",
            "a.html",
            of(
                "<math><mfrac><mn>1</mn><mn>2</mn></mfrac></math> <math><msup><mi>c</mi><mn>2</mn></msup></math>",
            ),
            &["1/2 c²"],
            &[],
        ),
        row(
            "ruby",
            "a.html",
            of("<ruby>漢<rp>(</rp><rt>kan</rt><rp>)</rp></ruby>"),
            &["漢(kan)"],
            &[],
        ),
        row(
            "boxes and menus",
            "a.html",
            of(
                "<label><input type=checkbox checked>agreed</label> <label><input type=radio>refused</label><select><option>aa<option selected>bb</select><input type=image alt=send>",
            ),
            &["[x] agreed", "[ ] refused", "bb", "send"],
            &["aa"],
        ),
        row(
            "numbers of lists",
            "a.html",
            of("<ol start=5><li>x</ol><ol type=a reversed><li>y<li>z</ol>"),
            &["5. x", "b. y\na. z"],
            &[],
        ),
        row(
            "numbers by style",
            "a.html",
            styled(
                ".g{list-style:lower-greek}",
                "<ol class=g><li>x</ol><ol style='list-style:none'><li>plain</ol><ul style='list-style-type:decimal'><li>n</ul>",
            ),
            &["α. x", "1. n"],
            &["1. plain"],
        ),
        row(
            "targets of links",
            "a.html",
            of("See <a href='https://a.org/t'>terms</a>"),
            &["[terms](https://a.org/t)"],
            &[],
        ),
        row(
            "shadow trees",
            "a.html",
            of(
                "<x-a><template shadowrootmode=open><p>shadow</template>light</x-a><template>inert</template>",
            ),
            &["shadow", "light"],
            &["inert"],
        ),
        row("the foot of a table", "a.html", of(tfoot), &["Port\nBrest\nsum"], &[]),
        row(
            "spans",
            "a.html",
            of("<table><tr><td rowspan=2>R<td>1<tr><td>2</table>"),
            &["R | 1\n | 2"],
            &[],
        ),
        row("frames", "a.html", frames, &["No frames"], &["<b>"]),
        row(
            "pages within",
            "a.html",
            of("<iframe srcdoc='&lt;p&gt;inner'></iframe>"),
            &["inner"],
            &["&lt;"],
        ),
        row(
            "what stands in for an object",
            "a.html",
            of("<object data=a.svg><p>in its place</object>"),
            &["in its place"],
            &[],
        ),
        row(
            "a mark goes before a header",
            "a.html",
            [
                &b"\xff\xfe"[..],
                &page("", "größe").encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>(),
            ]
            .concat(),
            &["größe"],
            &[],
        ),
        row(
            "Japanese in seven bits",
            "a.html",
            b"<html><meta charset=iso-2022-jp><p>\x1b$B$\"\x1b(B</html>".to_vec(),
            &["あ"],
            &["$B"],
        ),
        hidden(
            "hidden, switched off, in no dialog",
            "a.html",
            of(
                "<p>seen<p hidden>one<p style='display:none'>two<dialog>three</dialog><div popover>four</div>",
            ),
            &["seen"],
            &["one", "two", "three", "four"],
        ),
        hidden(
            "clipped, shrunk, far off, folded",
            "a.html",
            of(
                "<p>seen<p style='clip-path:inset(100%)'>clipped<p style='position:absolute;clip:rect(0 0 0 0)'>cut<p style='transform:scale(0)'>shrunk<p style='position:absolute;left:-100em'>far<p style='max-height:0;overflow:hidden'>folded",
            ),
            &["seen"],
            &["clipped", "cut", "shrunk", "far", "folded"],
        ),
        hidden(
            "rules within rules",
            "a.html",
            styled(
                "@layer a{@media screen{.x{display:none}}} @supports (display:grid){@media (min-width:1px){.y{visibility:hidden}}} .c{color:red; .z{display:none} &.w{opacity:0}}",
                "<p>seen<p class=x>gone1<p class=y>gone2<div class=c><p class=z>gone3</div><p class='c w'>gone4",
            ),
            &["seen"],
            &["gone1", "gone2", "gone3", "gone4"],
        ),
        hidden(
            "the color of the ground",
            "a.html",
            of(on_white),
            &["seen", "on black", "in old mail", "on a picture"],
            &["white", "on white"],
        ),
        hidden(
            "letters without a color",
            "a.html",
            styled(
                ".g{background:linear-gradient(red,blue);-webkit-background-clip:text;color:transparent}",
                "<h1 class=g>drawn by its ground</h1><p style='color:transparent'>clear<p style='color:rgba(9,9,9,0)'>empty<p style='filter:opacity(0)'>filtered<p style='font:0/0 serif'>shrunk<p style='font:12px serif'>seen",
            ),
            &["drawn by its ground", "seen"],
            &["clear", "empty", "filtered", "shrunk"],
        ),
        hidden(
            "what is seen within what is not",
            "a.html",
            of(
                "<div style='visibility:hidden'>gone <b style='visibility:visible'>back</b> <i style='visibility:inherit'>lost</i></div><p style='visibility:collapse'>off<p>seen",
            ),
            &["back", "seen"],
            &["gone", "lost", "off"],
        ),
        row(
            "the encoding of XML",
            "a.xhtml",
            b"<?xml version='1.0' encoding='ISO-8859-2'?><html xmlns='http://www.w3.org/1999/xhtml'><body><p>\xafeglarz p\xb3ynie</p></body></html>".to_vec(),
            &["Żeglarz płynie"],
            &[],
        ),
        row(
            "lines of a field, boxes of choices",
            "a.html",
            of("<textarea>one\n two</textarea><select size=3><option>aa<option>bb</select><meter>7 of 9</meter><progress>half</progress>"),
            &["one\n two", "aa bb 7 of 9 half"],
            &[],
        ),
        row(
            "paragraphs of items",
            "a.html",
            of("<ol><li><p>one</p><p>more</p></li><li></li></ol><p>end"),
            &["1. one\n\nmore", "2.\n\nend"],
            &[],
        ),
        row(
            "a ground that is not known",
            "a.html",
            page("<link rel=stylesheet href=a.css>", "<p style='color:#fff'>on whatever it says"),
            &["on whatever it says"],
            &[],
        ),
        row(
            "the order of items beside each other",
            "a.html",
            styled(
                ".f{display:flex}.last{order:2}.first{order:-1}.r{display:inline-flex;flex-direction:row-reverse}",
                "<div class=f><p class=last>c<p>b<p class=first>a</div><div class=r><p>e<p>d</div><p class=last>f<p>g",
            ),
            &["a\n\nb\n\nc\n\nd\n\ne\n\nf\n\ng"],
            &[],
        ),
        hidden(
            "colors of newer notations",
            "a.html",
            styled(
                ".dark{background:oklch(0.2 0.05 260)}",
                "<p>seen<p style='color:oklch(100% 0 0)'>white<p style='color:lab(100 0 0)'>lab<div class=dark><p style='color:lch(95% 0 0)'>on dark<p style='color:oklch(0.2 0.05 260)'>same</div><p style='color:rgb(0 0 0/1%)'>faint",
            ),
            &["seen", "on dark"],
            &["white", "lab", "same", "faint"],
        ),
        hidden(
            "letters without a size around others",
            "a.html",
            of(
                "<div style='font-size:0'>unseen <p style='font-size:14px'>seen<p style='font:bold 14px/1.5 Arial'>seen too<p style='font-size:2em'>nothing</div><p style='font:0/0 a'>none",
            ),
            &["seen\n\nseen too"],
            &["unseen", "nothing", "none"],
        ),
        row(
            "a page in an address",
            "a.html",
            of(
                "a<iframe src='data:text/html,%3Ch1%3EIn%3C/h1%3E'></iframe>b<iframe src='data:text/html;base64,PHA+c2lkZTwvcD4='></iframe>",
            ),
            &["a\n\n# In\n\nb\n\nside"],
            &[],
        ),
        row(
            "slots of shadow trees",
            "a.html",
            of(
                "<x-a><template shadowrootmode=open><h2><slot name=t>usual</slot></h2><slot></slot><p>end <slot name=u>kept</slot></template><span slot=t>Tides</span><x-b><template shadowrootmode=open><i><slot></slot></i></template>light</x-b></x-a>",
            ),
            &["## Tides\n\nlight\n\nend kept"],
            &["usual"],
        ),
        row(
            "lines of a drawing",
            "a.html",
            of("<svg><text><tspan x=0>high</tspan><tspan x=0 dy=9>wa<tspan>ter</tspan></tspan></text></svg>"),
            &["high water"],
            &[],
        ),
        row(
            "counters in letters",
            "a.html",
            styled(
                "h2::before{counter-increment:s;content:counter(s, upper-roman) '. '}",
                "<h2>Ebb</h2><h2>Flow</h2>",
            ),
            &["## I. Ebb", "## II. Flow"],
            &[],
        ),
        hidden(
            "a clip of one point",
            "a.html",
            of("<p>seen<p style='clip-path:polygon(0 0, 0 0, 0 0)'>clipped<p style='clip-path:polygon(0 0, 9px 0, 0 9px)'>corner"),
            &["seen", "corner"],
            &["clipped"],
        ),
        row(
            "a page that shows nothing without scripts",
            "a.html",
            of("<div id=app></div><noscript><h1>Fees</h1><p>950 EUR</noscript>"),
            &["# Fees\n\n950 EUR"],
            &[],
        ),
        row(
            "a page in eight bits that says it is in UTF-8",
            "a.html",
            b"<meta charset=utf-8><p>gr\xf6\xdfer als die Stra\xdfe".to_vec(),
            &["größer als die Straße"],
            &[],
        ),
        row("a page of links", "a.html", of("<nav><a>Fees</a></nav>"), &["Fees"], &[]),
        row("soft hyphens", "a.html", of("<p>Donau&shy;dampf&#173;schiff"), &["Donaudampfschiff"], &[]),
    ]
}
