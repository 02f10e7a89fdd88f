//! Text in other parts of a document, and other states of it that the file keeps.

use super::{
    Right, Row,
    binary_book::{book, label},
    hidden, row, sheets, slides, unread, word,
};
use crate::common::{archive, odp, ods, odt, package, relations, texts, xlsx};

/// Makes a DOCX with one part that its text refers to by `r:id='x'`.
fn referring(element: &str, kind: &str, name: &str, part: &str) -> Vec<u8> {
    let body = format!("{}<w:p><w:r>{element}</w:r></w:p>", word::p("", "seen"));
    word::with(&body, &[(&format!("word/{name}"), part)], &[("x", kind, name)])
}

/// Makes a DOCX whose text refers to another file.
fn referring_out(element: &str) -> Vec<u8> {
    let relations = "<Relationships><Relationship Id='x' Type='x/y' Target='https://a.org/chapter' TargetMode='External'/></Relationships>";
    let body =
        format!("<w:document><w:body>{}{element}</w:body></w:document>", word::p("", "seen"));
    archive(&[
        ("[Content_Types].xml", b"<Types/>"),
        ("word/document.xml", body.as_bytes()),
        ("word/_rels/document.xml.rels", relations.as_bytes()),
    ])
}

/// Makes an EPUB with these items and this order.
fn epub(items: &str, order: &str, page: &str) -> Vec<u8> {
    let book = format!("<package><manifest>{items}</manifest><spine>{order}</spine></package>");
    let page = format!(
        "<html xmlns='http://www.w3.org/1999/xhtml' xmlns:epub='http://www.idpf.org/2007/ops'><body>{page}</body></html>"
    );
    archive(&[
        ("mimetype", b"application/epub+zip"),
        (
            "META-INF/container.xml",
            b"<container><rootfiles><rootfile full-path='b.opf'/></rootfiles></container>",
        ),
        ("b.opf", book.as_bytes()),
        ("a.xhtml", page.as_bytes()),
        ("p.pdf", b"%PDF-1.4 words of the file"),
    ])
}

fn of_docx() -> Vec<Row> {
    let mark = |kind: &str| format!("<w:r><w:fldChar w:fldCharType='{kind}'/></w:r>");
    let code = |code: &str| format!("<w:r><w:instrText>{code}</w:instrText></w:r>");
    let several = format!(
        "<w:p>{}{}{}</w:p><w:p>{}{}{}{}{}{}{}</w:p>",
        word::run("", "Status: "),
        mark("begin"),
        code("IF a = b \"Dear Sir,"),
        code("your order "),
        word::field("MERGEFIELD order", &word::run("", "ORD-123")),
        word::run("", "typed code"),
        code("failed\" \"OK\""),
        mark("separate"),
        word::run("", "OK"),
        mark("end"),
    );
    let open = format!("<w:p>{}{}</w:p>{}", mark("begin"), code("IF x"), word::p("", "kept words"));
    let series = |name: &str| {
        format!(
            "<c:ser><c:tx><c:v>{name}</c:v></c:tx><c:val><c:pt><c:v>7</c:v></c:pt></c:val></c:ser>"
        )
    };
    let chart = format!(
        "<c:chartSpace>{}<c:extLst><c:ext><c15:filteredBarSeries>{}</c15:filteredBarSeries></c:ext></c:extLst></c:chartSpace>",
        series("Metres"),
        series("Filtered")
    );
    let fill =
        |fill: &str, text: &str| word::p(&format!("<w14:textFill>{fill}</w14:textFill>"), text);
    let clear = "<w14:solidFill><w14:srgbClr w14:val='000000'><w14:alpha w14:val='100000'/></w14:srgbClr></w14:solidFill>";
    let fills = [
        fill("<w14:noFill/>", "no fill"),
        fill(clear, "clear fill"),
        fill("<w14:solidFill><w14:schemeClr w14:val='accent1'/></w14:solidFill>", "blue"),
    ];
    let note = |id: usize, text: &str| {
        format!("<w:footnote w:id='{id}'>{}</w:footnote>", word::p("", text))
    };
    let reference =
        |id: usize, more: &str| format!("<w:r><w:footnoteReference w:id='{id}' {more}/></w:r>");
    let notes = word::with(
        &format!(
            "<w:p>{}{}{}{}{}</w:p>",
            word::run("", "one"),
            reference(1, "w:customMarkFollows='1'"),
            word::run("", "* two"),
            reference(2, ""),
            format_args!("<w:del>{}</w:del>", reference(3, "")),
        ),
        &[(
            "word/footnotes.xml",
            &format!(
                "<w:footnotes>{}{}{}</w:footnotes>",
                note(1, "* starred"),
                note(2, "numbered"),
                note(3, "orphan")
            ),
        )],
        &[("f", "footnotes", "footnotes.xml")],
    );
    let roman = word::with(
        &format!(
            "<w:p>{}</w:p><w:sectPr><w:footnotePr><w:numFmt w:val='lowerRoman'/><w:numStart w:val='4'/></w:footnotePr></w:sectPr>",
            reference(1, "")
        ),
        &[("word/footnotes.xml", &format!("<w:footnotes>{}</w:footnotes>", note(1, "below")))],
        &[("f", "footnotes", "footnotes.xml")],
    );
    vec![
        row("numbers of notes", "a.docx", roman, &["[^iv]\n\n[^iv]: below"], &[]),
        row(
            "a field whose code has several paragraphs",
            "a.docx",
            word::of(&several),
            &["Status: OK"],
            &["ORD-123", "Dear", "typed"],
        ),
        row("a field without an end", "a.docx", word::of(&open), &["kept words"], &[]),
        row(
            "a filtered series of a chart",
            "a.docx",
            referring("<w:drawing><c:chart r:id='x'/></w:drawing>", "chart", "c.xml", &chart),
            &["Metres | 7"],
            &["Filtered"],
        ),
        hidden(
            "letters without a fill",
            "a.docx",
            word::of(&fills.concat()),
            &["blue"],
            &["no fill", "clear fill"],
        ),
        hidden(
            "a note without a reference, and one with its own mark",
            "a.docx",
            notes,
            &["one* two[^1]", "\n* starred", "[^1]: numbered"],
            &["orphan"],
        ),
        unread(
            "a chapter in another file",
            "a.docx",
            referring_out("<w:p><w:subDoc r:id='x'/></w:p>"),
            &["seen"],
        ),
        row(
            "a link to a place in a page",
            "a.docx",
            referring_out(
                "<w:p><w:hyperlink r:id='x' w:anchor='ebb'><w:r><w:t>there</w:t></w:r></w:hyperlink></w:p>",
            ),
            &["[there](https://a.org/chapter#ebb)"],
            &[],
        ),
    ]
}

fn of_books() -> Vec<Row> {
    let styles = "<styleSheet><numFmts><numFmt numFmtId='164' formatCode='0.0'/></numFmts><cellXfs><xf numFmtId='164'/></cellXfs>\
        <dxfs><dxf><numFmt numFmtId='164' formatCode='0&quot; no&quot;'/></dxf></dxfs></styleSheet>";
    let of_sheet = |cells: &str,
                    more: &str,
                    related: &[(&str, &str, &str)],
                    part: (&'static str, &str)| {
        sheets::with(
            xlsx(),
            vec![
                ("xl/worksheets/sheet1.xml", sheets::sheet(&format!("<row>{cells}</row>"), more)),
                ("xl/worksheets/_rels/sheet1.xml.rels", relations(related)),
                (part.0, part.1.to_owned()),
            ],
        )
    };
    let cell =
        "<c t='str'><f>HYPERLINK(\"https://a.org/f\",\"Formula link\")</f><v>Formula link</v></c>";
    let picture = "<wsDr><pic><nvPicPr><cNvPr descr='A harbour'/></nvPicPr></pic></wsDr>";
    let pt = "<dgm:dataModel><dgm:ptLst><dgm:pt><dgm:t><a:p><a:r><a:t>flow chart</a:t></a:r></a:p></dgm:t></dgm:pt></dgm:ptLst></dgm:dataModel>";
    let diagram = sheets::with(
        xlsx(),
        vec![
            (
                "xl/worksheets/_rels/sheet1.xml.rels",
                relations(&[("d", "drawing", "../drawings/d.xml")]),
            ),
            (
                "xl/drawings/d.xml",
                "<wsDr><graphicFrame><dgm:relIds r:dm='m'/></graphicFrame></wsDr>".to_owned(),
            ),
            (
                "xl/drawings/_rels/d.xml.rels",
                relations(&[("m", "diagramData", "../diagrams/m.xml")]),
            ),
            ("xl/diagrams/m.xml", pt.to_owned()),
        ],
    );
    // The record of the code page becomes one of encryption (`FilePass`).
    let mut locked = book(1_200, &[], &[(false, vec![label(0, 0, "cipher")])]);
    let place = locked.windows(4).position(|it| it == [0x42, 0, 2, 0]).unwrap();
    locked[place] = 0x2f;
    let dde = "<c><office:spreadsheet><table:table table:name='A'><table:table-row><table:table-cell><text:p>real <text:a xlink:href='https://a.org'>link</text:a></text:p></table:table-cell></table:table-row></table:table>\
        <table:dde-links><table:dde-link><table:table><table:table-row><table:table-cell><text:p>cached</text:p></table:table-cell></table:table-row></table:table></table:dde-link></table:dde-links></office:spreadsheet></c>";
    vec![
        row(
            "formats for some cells only",
            "a.xlsx",
            sheets::with(
                xlsx(),
                vec![
                    ("xl/styles.xml", styles.to_owned()),
                    (
                        "xl/worksheets/sheet1.xml",
                        sheets::sheet("<row><c s='0'><v>7</v></c></row>", ""),
                    ),
                ],
            ),
            &["7.0"],
            &["no"],
        ),
        row(
            "an address in a formula",
            "a.xlsx",
            of_sheet(cell, "", &[], ("xl/x.xml", "<x/>")),
            &["[Formula link](https://a.org/f)"],
            &[],
        ),
        row(
            "an embedded text of a sheet",
            "a.xlsx",
            of_sheet(
                "",
                "",
                &[("e", "package", "../embeddings/e.txt")],
                ("xl/embeddings/e.txt", "embedded words"),
            ),
            &["embedded words"],
            &[],
        ),
        unread(
            "an object of another program in a sheet",
            "a.xlsx",
            of_sheet(
                "",
                "",
                &[("e", "oleObject", "../embeddings/e.bin")],
                ("xl/embeddings/e.bin", "?"),
            ),
            &[],
        ),
        row(
            "the description of a picture",
            "a.xlsx",
            of_sheet(
                "",
                "",
                &[("d", "drawing", "../drawings/d.xml")],
                ("xl/drawings/d.xml", picture),
            ),
            &["[Picture: A harbour]"],
            &[],
        ),
        row("a diagram of a sheet", "a.xlsx", diagram, &["flow chart"], &[]),
        row(
            "the largest number",
            "a.xlsx",
            sheets::with(
                xlsx(),
                vec![(
                    "xl/worksheets/sheet1.xml",
                    sheets::sheet("<row><c><v>1.7976931348623157E+308</v></c></row>", ""),
                )],
            ),
            &["1.7976931348623157E+308"],
            &["inf"],
        ),
        hidden(
            "last values of a link to a program",
            "a.ods",
            sheets::with(ods(), vec![("content.xml", dde.to_owned())]),
            &["real [link](https://a.org)"],
            &["cached"],
        ),
    ]
}

fn of_slides() -> Vec<Row> {
    let said =
        |text: &str| format!("<p188:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p188:txBody>");
    let comments = format!(
        "<p188:cmLst><p188:cm authorId='A'><p188:replyLst><p188:reply authorId='B'>{}</p188:reply></p188:replyLst>{}</p188:cm></p188:cmLst>",
        said("why not"),
        said("please check")
    );
    let presentation = relations(&[
        ("r1", "slide", "slides/slide1.xml"),
        ("r2", "slide", "slides/slide2.xml"),
        ("r3", "authors", "authors.xml"),
    ]);
    let document = slides::with(vec![
        ("ppt/_rels/presentation.xml.rels", presentation),
        (
            "ppt/authors.xml",
            "<p188:authorLst><p188:author id='A' name='Ada'/></p188:authorLst>".to_owned(),
        ),
        ("ppt/slides/_rels/slide1.xml.rels", relations(&[("c", "comments", "../comments/c.xml")])),
        ("ppt/comments/c.xml", comments),
    ]);
    let item = |kind: &str| {
        format!(
            "<a:p><a:pPr><a:buAutoNum type='{kind}' startAt='2'/></a:pPr><a:r><a:t>item</a:t></a:r></a:p>"
        )
    };
    let items = ["thaiNumPeriod", "hebrew2Minus", "arabicPeriod"].map(item).concat();
    let numbered = slides::with(vec![(
        "ppt/slides/slide1.xml",
        format!(
            "<p:sld><p:cSld><p:spTree><p:sp><p:txBody>{items}</p:txBody></p:sp><p:contentPart r:id='x'/></p:spTree></p:cSld></p:sld>"
        ),
    )]);
    vec![
        row(
            "replies to comments",
            "a.pptx",
            document,
            &["[Comment by Ada: please check]\n\n[Comment: why not]"],
            &[],
        ),
        row(
            "numbers of other scripts",
            "a.pptx",
            numbered,
            &["๒. item", "ב- item", "2. item"],
            &[],
        ),
    ]
}

fn of_open_texts() -> Vec<Row> {
    let styles = "<text:list-style style:name='L'><text:list-level-style-number text:level='1' style:num-format='イ, ロ, ハ, ...' style:num-suffix='.'/>\
        <text:list-level-style-number text:level='2' style:num-format='1' text:display-levels='2' style:num-suffix=')'/></text:list-style>";
    let item = |level: usize, text: &str| {
        format!(
            "<text:numbered-paragraph text:list-id='n' text:level='{level}' text:style-name='L'><text:p>{text}</text:p></text:numbered-paragraph>"
        )
    };
    let body = [item(1, "one"), item(1, "two"), item(2, "deep"), item(1, "three")].concat();
    let edge = |kind: &str, more: &str, text: &str| {
        format!("<style:{kind} {more}><text:p>{text}</text:p></style:{kind}>")
    };
    let edges = [
        edge("header", "", "of right pages"),
        edge("header-left", "", "of left pages"),
        edge("footer-first", "", "of the first page"),
        edge("footer-left", "style:display='false'", "of no page"),
    ];
    let mut parts = odt();
    parts.retain(|(name, _)| *name != "styles.xml");
    parts.push((
        "styles.xml",
        format!("<s><office:master-styles><style:master-page>{}</style:master-page></office:master-styles></s>", edges.concat()).into_bytes(),
    ));
    let mut slides = odp();
    slides.retain(|(name, _)| *name == "mimetype");
    slides.extend(texts(vec![
        ("content.xml", "<c><office:body><office:presentation><presentation:footer-decl presentation:name='f'>on the edge</presentation:footer-decl><presentation:footer-decl presentation:name='g'>unused</presentation:footer-decl><draw:page draw:master-page-name='M' presentation:use-footer-name='f'><draw:frame><draw:text-box><text:p>ebb</text:p></draw:text-box></draw:frame></draw:page></office:presentation></office:body></c>".to_owned()),
        ("styles.xml", "<s><office:master-styles><style:master-page style:name='M'><draw:frame><draw:text-box><text:p>secret</text:p></draw:text-box></draw:frame><draw:frame presentation:class='title'><draw:text-box><text:p>click here</text:p></draw:text-box></draw:frame></style:master-page></office:master-styles></s>".to_owned()),
    ]));
    vec![
        row(
            "masters and footers",
            "a.odp",
            package(&slides),
            &["ebb\n\nOn each slide: secret\non the edge"],
            &["unused", "click here"],
        ),
        row(
            "the title of the document, conditions",
            "a.odt",
            word::odt(
                "",
                "<text:p>see <text:title>Tides</text:title></text:p><text:section text:display='condition' text:is-hidden='true'><text:p>gone</text:p></text:section>",
            ),
            &["see Tides"],
            &["gone"],
        ),
        row(
            "headers of left and first pages",
            "a.odt",
            package(&parts),
            &["of right pages", "of left pages", "of the first page"],
            &["of no page"],
        ),
        row(
            "paragraphs that are numbered one by one",
            "a.odt",
            word::odt(styles, &body),
            &["イ. one\nロ. two\n  ロ.1) deep\nハ. three"],
            &[],
        ),
    ]
}

fn of_epub_and_mail() -> Vec<Row> {
    let page = "<item id='a' href='a.xhtml' media-type='application/xhtml+xml'/>";
    let other = |more: &str| {
        format!("{page}<item id='p' href='p.pdf' media-type='application/pdf' {more}/>")
    };
    let case = "<epub:switch><epub:case required-namespace='http://x'><p>case</p></epub:case><epub:default><p>shown</p></epub:default></epub:switch>";
    let cipher = "From: a@b.org\r\nSubject: s\r\nContent-Type: text/plain\r\n\r\n-----BEGIN PGP MESSAGE-----\r\n\r\nhQEMA\r\n-----END PGP MESSAGE-----\r\n";
    vec![
        row(
            "a page in place of another file",
            "a.epub",
            epub(&other("fallback='a'"), "<itemref idref='p'/>", "<p>fallback</p>"),
            &["fallback"],
            &["PDF", "words"],
        ),
        row(
            "a chapter that is no page",
            "a.epub",
            epub(&other(""), "<itemref idref='a'/><itemref idref='p'/>", "<p>shown</p>"),
            &["shown"],
            &["PDF", "words"],
        ),
        row(
            "alternatives of a page",
            "a.epub",
            epub(page, "<itemref idref='a'/>", case),
            &["shown"],
            &["case"],
        ),
        row(
            "notes that a touch shows",
            "a.epub",
            epub(
                page,
                "<itemref idref='a'/>",
                "<p>tide<a epub:type='noteref' href='#n'>1</a></p><aside epub:type='footnote' id='n' hidden='hidden'><p>at noon</p></aside><aside epub:type='footnote' id='o' hidden='hidden'><p>for nobody</p></aside>",
            ),
            &["tide1", "at noon"],
            &["nobody"],
        ),
        unread("an encrypted message", "a.eml", cipher, &["Subject: s", "encrypted"]),
        Row {
            kind: "an encrypted text",
            name: "a.asc",
            document: b"-----BEGIN PGP MESSAGE-----\n\nhQEMA\n".to_vec(),
            right: Right::Refused("encrypted"),
        },
    ]
}

pub(crate) fn rows() -> Vec<Row> {
    [of_docx(), of_books(), of_slides(), of_open_texts(), of_epub_and_mail()]
        .into_iter()
        .flatten()
        .collect()
}
