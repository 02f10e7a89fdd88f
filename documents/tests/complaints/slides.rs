//! Presentations.

use super::{Right, Row, hidden, row, unread};
use crate::common::{Parts, package, pptx, relations, texts};

/// Replaces parts of the common presentation.
pub(super) fn with(others: Vec<(&'static str, String)>) -> Vec<u8> {
    let mut parts: Parts = pptx();
    for (name, text) in texts(others) {
        parts.retain(|(known, _)| *known != name);
        parts.push((name, text));
    }
    package(&parts)
}

/// Makes an `OpenDocument` file with the slide "Tides" and another slide.
fn open(kind: &str, styles: &str, other: &str) -> Vec<u8> {
    package(&texts(vec![
        ("mimetype", format!("application/vnd.oasis.opendocument.{kind}")),
        (
            "content.xml",
            format!(
                "<office:document-content><office:automatic-styles>{styles}</office:automatic-styles><office:body><office:presentation><draw:page><draw:text-box><text:p>Tides</text:p></draw:text-box></draw:page>{other}</office:presentation></office:body></office:document-content>"
            ),
        ),
    ]))
}

fn slide(shapes: &str) -> Vec<u8> {
    with(vec![(
        "ppt/slides/slide1.xml",
        format!("<p:sld><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></p:sld>"),
    )])
}

/// Makes a slide with a layout and a master, with attributes of the slide and of the layout.
fn layered(slide: &str, layout: &str) -> Vec<u8> {
    let part = |root: &str, attributes: &str, text: &str| {
        let shape = shape((0, 0), "", ">", text);
        format!("<p:{root} {attributes}><p:cSld><p:spTree>{shape}</p:spTree></p:cSld></p:{root}>")
    };
    with(vec![
        ("ppt/slides/slide1.xml", part("sld", slide, "Brest | 7")),
        ("ppt/slides/_rels/slide1.xml.rels", relations(&[("l", "slideLayout", "../layout.xml")])),
        ("ppt/layout.xml", part("sldLayout", layout, "of the layout")),
        ("ppt/_rels/layout.xml.rels", relations(&[("m", "slideMaster", "master.xml")])),
        ("ppt/master.xml", part("sldMaster", "", "of the master")),
    ])
}

fn shape(at: (i64, i64), name: &str, look: &str, text: &str) -> String {
    format!(
        "<p:sp><p:nvSpPr><p:cNvPr id='1' {name}/></p:nvSpPr><p:spPr><a:xfrm><a:off x='{}' y='{}'/><a:ext cx='900000' cy='300000'/></a:xfrm></p:spPr>\
         <p:txBody><a:p><a:r><a:rPr {look}</a:rPr><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>",
        at.0, at.1
    )
}

const FRAME: &str = "<a:xfrm><a:off x='0' y='0'/><a:ext cx='900000' cy='300000'/></a:xfrm>";

/// Makes a shape with a look, with a black run and one in another color.
fn colored(color: &str, look: &str) -> String {
    let look = look.replacen("<p:spPr>", &format!("<p:spPr>{FRAME}"), 1);
    format!(
        "<p:sp>{look}<p:txBody><a:p><a:r><a:t>seen </a:t></a:r>\
         <a:r><a:rPr><a:solidFill><a:srgbClr val='{color}'/></a:solidFill></a:rPr><a:t>unseen</a:t></a:r></a:p></p:txBody></p:sp>"
    )
}

fn on_paper(color: &str, look: &str) -> Vec<u8> {
    slide(&colored(color, look))
}

/// Makes slides whose master has a dark background, with text in a placeholder of a layout.
fn on_theme() -> Vec<u8> {
    let run = "<a:rPr><a:solidFill><a:schemeClr val='bg1'/></a:solidFill></a:rPr><a:t>unseen</a:t>";
    let white =
        "<a:rPr><a:solidFill><a:srgbClr val='FFFFFF'/></a:solidFill></a:rPr><a:t>seen </a:t>";
    let master = "<p:sldMaster><p:cSld><p:bg><p:bgRef idx='1001'><a:schemeClr val='bg1'/></p:bgRef></p:bg><p:spTree/></p:cSld><p:clrMap bg1='dk1' tx1='lt1'/></p:sldMaster>";
    with(vec![
        (
            "ppt/slides/slide1.xml",
            format!(
                "<p:sld><p:cSld><p:spTree><p:sp><p:nvSpPr><p:nvPr><p:ph type='body'/></p:nvPr></p:nvSpPr><p:spPr/>\
                 <p:txBody><a:p><a:r>{white}</a:r><a:r>{run}</a:r></a:p></p:txBody></p:sp></p:spTree></p:cSld></p:sld>"
            ),
        ),
        ("ppt/slides/_rels/slide1.xml.rels", relations(&[("l", "slideLayout", "../slideLayouts/l.xml")])),
        ("ppt/slideLayouts/l.xml", "<p:sldLayout><p:cSld><p:spTree/></p:cSld></p:sldLayout>".to_owned()),
        ("ppt/slideLayouts/_rels/l.xml.rels", relations(&[("m", "slideMaster", "../slideMasters/m.xml")])),
        ("ppt/slideMasters/m.xml", master.to_owned()),
        ("ppt/slideMasters/_rels/m.xml.rels", relations(&[("t", "theme", "../theme/t.xml")])),
        ("ppt/theme/t.xml", "<a:theme><a:clrScheme><a:dk1><a:sysClr val='windowText' lastClr='101010'/></a:dk1><a:lt1><a:srgbClr val='FFFFFF'/></a:lt1></a:clrScheme></a:theme>".to_owned()),
    ])
}

/// Makes slides whose layout has a notice, a prompt, white text and text outside of the slide.
fn on_layout() -> Vec<u8> {
    let white = "><a:solidFill><a:srgbClr val='FFFFFF'/></a:solidFill>";
    let shapes = [
        shape((0, 0), "", ">", "notice"),
        shape((0, 900_000), "", white, "unseen"),
        shape((9_900_000, 0), "", ">", "beside"),
        shape((0, 2_000_000), "", ">", "unplaced")
            .replace("</p:nvSpPr>", "<p:nvPr><p:ph type='body'/></p:nvPr></p:nvSpPr>"),
    ];
    with(vec![
        ("ppt/presentation.xml", "<p:presentation><p:sldSz cx='9144000' cy='6858000'/><p:sldIdLst><p:sldId id='257' r:id='r1'/></p:sldIdLst></p:presentation>".to_owned()),
        ("ppt/slides/_rels/slide1.xml.rels", relations(&[("l", "slideLayout", "../slideLayouts/l.xml")])),
        ("ppt/slideLayouts/l.xml", format!("<p:sldLayout><p:cSld><p:spTree>{}</p:spTree></p:cSld></p:sldLayout>", shapes.concat())),
        ("ppt/slideLayouts/_rels/l.xml.rels", relations(&[("m", "slideMaster", "../slideMasters/m.xml")])),
        ("ppt/slideMasters/m.xml", "<p:sldMaster><p:cSld><p:spTree/></p:cSld></p:sldMaster>".to_owned()),
    ])
}

/// Makes a slide with a chart of these series.
fn charted(series: &str) -> Vec<u8> {
    with(vec![
        ("ppt/slides/_rels/slide1.xml.rels", relations(&[("c", "chart", "../charts/c.xml")])),
        ("ppt/charts/c.xml", format!("<c:chartSpace>{series}</c:chartSpace>")),
    ])
}

pub(crate) fn rows() -> Vec<Row> {
    let sections = "<p:presentation><p:sldSz cx='9144000' cy='6858000'/><p:sldIdLst><p:sldId id='256' r:id='r2'/><p:sldId id='257' r:id='r1'/></p:sldIdLst>\
        <p:extLst><p:ext><p14:sectionLst><p14:section><p14:sldIdLst><p14:sldId id='256'/><p14:sldId id='257'/></p14:sldIdLst></p14:section></p14:sectionLst></p:ext></p:extLst></p:presentation>";
    let beside = with(vec![
        ("ppt/presentation.xml", sections.to_owned()),
        (
            "ppt/slides/slide1.xml",
            format!(
                "<p:sld><p:cSld><p:spTree>{}{}{}</p:spTree></p:cSld></p:sld>",
                shape((0, 0), "", ">", "on it"),
                shape((0, -900_000), "", ">", "beside it"),
                shape((0, 0), "hidden='1'", ">", "off")
            ),
        ),
    ]);
    let linked = with(vec![
        ("ppt/slides/slide1.xml", format!("<p:sld><p:cSld><p:spTree>{}</p:spTree></p:cSld></p:sld>", shape((0, 0), "", "><a:hlinkClick r:id='l'/>", "terms"))),
        ("ppt/slides/_rels/slide1.xml.rels", "<Relationships><Relationship Id='l' Type='http://x/hyperlink' Target='https://a.org/t' TargetMode='External'/></Relationships>".to_owned()),
    ]);
    let broken = with(vec![
        ("ppt/slides/_rels/slide1.xml.rels", relations(&[("c", "comments", "../comments/c.xml")])),
        ("ppt/comments/c.xml", "<p:cmLst><p:cm".to_owned()),
    ]);
    let number =
        "<a:p><a:pPr><a:buAutoNum type='arabicPeriod'/></a:pPr><a:r><a:t>step</a:t></a:r></a:p>"
            .repeat(2);
    vec![
        row("chart with a gap", "a.pptx", charted("<c:ser><c:tx><c:v>Rain</c:v></c:tx><c:cat><c:pt idx='0'><c:v>May</c:v></c:pt><c:pt idx='1'><c:v>June</c:v></c:pt><c:pt idx='2'><c:v>July</c:v></c:pt></c:cat><c:val><c:numCache><c:formatCode>0.0</c:formatCode><c:pt idx='0'><c:v>4.04</c:v></c:pt><c:pt idx='2'><c:v>6</c:v></c:pt></c:numCache></c:val></c:ser>"), &["Rain | May: 4.0 | June: | July: 6.0"], &[]),
        row("chart of levels", "a.pptx", charted("<c:ser><c:cat><c:lvl><c:pt idx='0'><c:v>Q1</c:v></c:pt><c:pt idx='1'><c:v>Q2</c:v></c:pt></c:lvl><c:lvl><c:pt idx='0'><c:v>2025</c:v></c:pt></c:lvl></c:cat><c:val><c:pt idx='0'><c:v>5</c:v></c:pt><c:pt idx='1'><c:v>6</c:v></c:pt></c:val></c:ser>"), &["2025 Q1: 5 | 2025 Q2: 6"], &[]),
        row("bubbles", "a.pptx", charted("<c:ser><c:xVal><c:pt idx='0'><c:v>3.5</c:v></c:pt></c:xVal><c:yVal><c:pt idx='0'><c:v>44</c:v></c:pt></c:yVal><c:bubbleSize><c:pt idx='0'><c:v>66</c:v></c:pt></c:bubbleSize></c:ser>"), &["3.5: 44 (66)"], &[]),
        row("inherited numbers", "a.pptx", slide(&format!("<p:sp><p:txBody><a:lstStyle><a:lvl1pPr><a:buAutoNum type='alphaLcParenR'/></a:lvl1pPr></a:lstStyle>{}<a:p><a:pPr><a:buNone/></a:pPr><a:r><a:t>plain</a:t></a:r></a:p></p:txBody></p:sp>", "<a:p><a:r><a:t>step</a:t></a:r></a:p>".repeat(2))), &["a) step\nb) step\nplain"], &[]),
        hidden("covered cell", "a.pptx", slide("<a:tbl><a:tr><a:tc gridSpan='2'><a:p><a:r><a:t>wide</a:t></a:r></a:p></a:tc><a:tc hMerge='1'><a:p><a:r><a:t>under</a:t></a:r></a:p></a:tc></a:tr></a:tbl>"), &["wide"], &["under"]),
        row("order by place", "a.odp", open("presentation", "", "<draw:page><draw:frame svg:x='2cm' svg:y='9cm'><draw:text-box><text:p>low</text:p></draw:text-box></draw:frame><draw:frame svg:x='2cm' svg:y='15mm'><draw:text-box><text:p>high</text:p></draw:text-box></draw:frame></draw:page>"), &["high\nlow"], &[]),
        row("headings with numbers", "a.odt", open("text", "<text:outline-style><text:outline-level-style text:level='1' style:num-format='1' style:num-suffix=')'/><text:outline-level-style text:level='2' style:num-format='a' text:display-levels='2'/></text:outline-style>", "<text:h text:outline-level='1'>Ebb</text:h><text:h text:outline-level='2'>Slow</text:h><text:h text:outline-level='1'>Flow</text:h>"), &["# 1) Ebb", "## 1.a Slow", "# 2) Flow"], &[]),
        row("controls", "a.odt", open("text", "", "<office:forms><form:form><form:checkbox form:id='a' form:label='Agreed' form:current-state='checked'/><form:text form:id='b' form:current-value='Ada'/></form:form></office:forms><text:p>Form <draw:control draw:control='a'/><draw:control draw:control='b'/></text:p>"), &["Form [x] Agreed Ada"], &[]),
        hidden("hidden paragraph", "a.odt", open("text", "", "<text:p><text:hidden-paragraph text:is-hidden='true'/>unseen</text:p>"), &["Tides"], &["unseen"]),
        row("sections", "a.pptx", with(vec![("ppt/presentation.xml", sections.to_owned())]), &["Tides", "Brest | 7"], &[]),
        row("order by place", "a.pptx", slide(&[shape((0, 900_000), "", ">", "low"), shape((0, 90_000), "", ">", "high")].concat()), &["high\nlow"], &[]),
        row("automatic numbers", "a.pptx", slide(&format!("<p:sp><p:txBody>{number}</p:txBody></p:sp>")), &["1. step\n2. step"], &[]),
        row("formulas", "a.pptx", slide("<p:sp><p:txBody><a:p><a14:m><m:oMath><m:sSup><m:e><m:r><m:t>c</m:t></m:r></m:e><m:sup><m:r><m:t>2</m:t></m:r></m:sup></m:sSup></m:oMath></a14:m></a:p></p:txBody></p:sp>"), &["c²"], &[]),
        row("struck text", "a.pptx", slide(&shape((0, 0), "", "strike='sngStrike'>", "500")), &["~~500~~"], &[]),
        row("capitals", "a.pptx", slide(&shape((0, 0), "", "cap='all'>", "sum")), &["SUM"], &[]),
        row("targets of links", "a.pptx", linked, &["[terms](https://a.org/t)"], &[]),
        hidden("shapes off and beside", "a.pptx", beside, &["on it"], &["beside it", "off"]),
        hidden("white on white", "a.pptx", on_paper("FFFFFF", "<p:spPr><a:noFill/></p:spPr>"), &["seen"], &["unseen"]),
        hidden("the color of the theme's ground", "a.pptx", on_theme(), &["seen"], &["unseen"]),
        hidden("white text, and text beside, of a layout", "a.pptx", on_layout(), &["On each slide: notice"], &["unseen", "beside"]),
        row("places of a layout for text", "a.pptx", on_layout(), &["notice"], &["unplaced"]),
        hidden("the color of its shape", "a.pptx", on_paper("1F3864", "<p:spPr><a:solidFill><a:srgbClr val='1F3864'/></a:solidFill></p:spPr>"), &["seen"], &["unseen"]),
        row("white on a shape", "a.pptx", on_paper("FFFFFF", "<p:spPr><a:solidFill><a:srgbClr val='1F3864'/></a:solidFill></p:spPr>"), &["unseen"], &[]),
        row("white on what a style fills", "a.pptx", on_paper("FFFFFF", "<p:spPr/><p:style/>"), &["unseen"], &[]),
        row("white on a picture", "a.pptx", slide(&format!("<p:pic><p:spPr>{FRAME}</p:spPr></p:pic>{}", colored("FFFFFF", "<p:spPr><a:noFill/></p:spPr>"))), &["unseen"], &[]),
        hidden("letters of one point, clear, without a fill", "a.pptx", slide(&[
            shape((0, 0), "", "sz='100'>", "tiny"),
            shape((0, 0), "", "><a:solidFill><a:srgbClr val='000000'><a:alpha val='0'/></a:srgbClr></a:solidFill>", "clear"),
            shape((0, 0), "", "><a:noFill/>", "empty"),
            shape((0, 0), "", "><a:ln/><a:noFill/>", "outlined"),
        ].concat()), &["outlined"], &["tiny", "clear", "empty"]),
        hidden("hidden slides", "a.pptx", with(vec![("ppt/slides/slide1.xml", "<p:sld show='0'><p:cSld><p:spTree><p:sp><p:txBody><a:p><a:r><a:t>unshown</a:t></a:r></a:p></p:txBody></p:sp></p:spTree></p:cSld></p:sld>".to_owned())]), &["Tides"], &["unshown"]),
        hidden("hidden slides", "a.odp", open("presentation", "<style:style style:name='off' style:family='drawing-page'><style:drawing-page-properties presentation:visibility='hidden'/></style:style>", "<draw:page draw:style-name='off'><draw:text-box><text:p>unshown</text:p></draw:text-box></draw:page>"), &["## Slide 1\n\nTides"], &["unshown"]),
        row("drawings", "a.odg", open("graphics", "", ""), &["Tides"], &["office"]),
        Row { kind: "broken comments", name: "a.pptx", document: broken, right: Right::Unread { has: vec!["Brest | 7"] } },
        row("a layout that hides its master", "a.pptx", layered("", "showMasterSp='0'"), &["Brest | 7", "On each slide: of the layout"], &["of the master"]),
        row("slides that hide their layout", "a.pptx", layered("showMasterSp='0'", ""), &["Brest | 7"], &["of the layout", "of the master"]),
        row("masters", "a.pptx", layered("", ""), &["On each slide: of the master\nof the layout"], &[]),
        unread("linked objects", "a.pptx", with(vec![("ppt/slides/_rels/slide1.xml.rels", "<Relationships><Relationship Id='o' Type='http://x/oleObject' Target='file:///C:/plan.xlsx' TargetMode='External'/></Relationships>".to_owned())]), &["Brest | 7"]),
    ]
}
