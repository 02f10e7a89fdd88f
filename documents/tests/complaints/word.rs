//! Word and `OpenDocument` texts.

use super::{Right, Row, hidden, row};
use crate::common::{archive, package, relations, texts, xlsx};

/// Makes a document of these paragraphs and parts, with the references of its main part.
pub(super) fn with(body: &str, parts: &[(&str, &str)], refers: &[(&str, &str, &str)]) -> Vec<u8> {
    let main = format!("<w:document><w:body>{body}</w:body></w:document>");
    let relations = relations(refers);
    let mut all: Vec<(&str, &[u8])> = vec![
        ("[Content_Types].xml", b"<Types/>"),
        ("word/document.xml", main.as_bytes()),
        ("word/_rels/document.xml.rels", relations.as_bytes()),
    ];
    all.extend(parts.iter().map(|(name, part)| (*name, part.as_bytes())));
    archive(&all)
}

pub(super) fn of(body: &str) -> Vec<u8> {
    with(body, &[], &[])
}

pub(super) fn run(look: &str, text: &str) -> String {
    format!("<w:r><w:rPr>{look}</w:rPr><w:t xml:space='preserve'>{text}</w:t></w:r>")
}

/// Makes a paragraph that begins with a field.
fn numbered(code: &str, look: &str, text: &str) -> String {
    format!(
        "<w:p>{look}<w:r><w:fldChar w:fldCharType='begin'/></w:r><w:r><w:instrText> {code} </w:instrText></w:r><w:r><w:fldChar w:fldCharType='end'/></w:r>{}</w:p>",
        run("", &format!(" {text}"))
    )
}

pub(super) fn p(look: &str, text: &str) -> String {
    format!("<w:p>{}</w:p>", run(look, text))
}

/// Makes a list with these levels and items.
fn listed(levels: &[(&str, &str, &str)], items: &[(usize, &str)]) -> Vec<u8> {
    let item = |(level, text): &(usize, &str)| {
        format!(
            "<w:p><w:pPr><w:numPr><w:ilvl w:val='{level}'/><w:numId w:val='1'/></w:numPr></w:pPr>{}</w:p>",
            run("", text)
        )
    };
    let level = |(at, (format, text, more)): (usize, &(&str, &str, &str))| {
        format!(
            "<w:lvl w:ilvl='{at}'><w:start w:val='1'/><w:numFmt w:val='{format}'/>{more}<w:lvlText w:val='{text}'/></w:lvl>"
        )
    };
    let levels: String = levels.iter().enumerate().map(level).collect();
    let numbering = format!(
        "<w:numbering><w:abstractNum w:abstractNumId='1'>{levels}</w:abstractNum><w:num w:numId='1'><w:abstractNumId w:val='1'/></w:num></w:numbering>"
    );
    let body: String = items.iter().map(item).collect();
    with(&body, &[("word/numbering.xml", &numbering)], &[("n", "numbering", "numbering.xml")])
}

pub(super) fn field(code: &str, result: &str) -> String {
    let mark = |kind: &str| format!("<w:r><w:fldChar w:fldCharType='{kind}'/></w:r>");
    format!(
        "{}<w:r><w:instrText>{code}</w:instrText></w:r>{}{result}{}",
        mark("begin"),
        mark("separate"),
        mark("end")
    )
}

pub(super) fn odt(styles: &str, body: &str) -> Vec<u8> {
    package(&texts(vec![
        ("mimetype", "application/vnd.oasis.opendocument.text".to_owned()),
        (
            "content.xml",
            format!(
                "<office:document-content><office:automatic-styles>{styles}</office:automatic-styles><office:body><office:text>{body}</office:text></office:body></office:document-content>"
            ),
        ),
    ]))
}

fn style(name: &str, properties: &str) -> String {
    format!(
        "<style:style style:name='{name}' style:family='text'><style:text-properties {properties}/></style:style>"
    )
}

pub(crate) fn rows() -> Vec<Row> {
    let nested = {
        let inner = field(" MERGEFIELD n ", &run("", "inner"));
        let mark = |kind: &str| format!("<w:r><w:fldChar w:fldCharType='{kind}'/></w:r>");
        format!(
            "<w:p>{}{}<w:r><w:instrText>IF </w:instrText></w:r>{inner}<w:r><w:instrText>= 1</w:instrText></w:r>{}{}{}{}</w:p>",
            run("", "a "),
            mark("begin"),
            mark("separate"),
            run("", "no"),
            mark("end"),
            run("", " z")
        )
    };
    let legal = "<w:isLgl/>";
    let diagram = "<dgm:dataModel><dgm:ptLst><dgm:pt modelId='2'><dgm:t><a:p><a:r><a:t>flow</a:t></a:r></a:p></dgm:t></dgm:pt>\
        <dgm:pt modelId='1'><dgm:t><a:p><a:r><a:t>ebb</a:t></a:r></a:p></dgm:t></dgm:pt><dgm:pt modelId='0' type='doc'/></dgm:ptLst>\
        <dgm:cxnLst><dgm:cxn srcId='0' destId='1' srcOrd='0'/><dgm:cxn srcId='0' destId='2' srcOrd='1'/></dgm:cxnLst></dgm:dataModel>";
    let broken = with(
        &p("", "body stays"),
        &[("word/footnotes.xml", "<w:footnotes><w:foot")],
        &[("f", "footnotes", "footnotes.xml")],
    );
    let broken_relations = archive(&[
        ("[Content_Types].xml", b"<Types/>"),
        ("word/document.xml", b"<w:document><w:body><w:p><w:r><w:t>body stays</w:t></w:r></w:p></w:body></w:document>"),
        ("word/_rels/document.xml.rels", b"<Relationships><Relationship"),
    ]);
    let flat = "<?xml version='1.0'?><pkg:package xmlns:pkg='http://schemas.microsoft.com/office/2006/xmlPackage'><pkg:part pkg:name=\"/word/document.xml\"><pkg:xmlData><w:document><w:body><w:p><w:r><w:t>flat words</w:t></w:r></w:p></w:body></w:document></pkg:xmlData></pkg:part></pkg:package>";
    let of_2003 = "<?xml version='1.0'?><w:wordDocument xmlns:w='http://schemas.microsoft.com/office/word/2003/wordml'><w:body><w:p><w:r><w:t>words of 2003</w:t></w:r></w:p></w:body></w:wordDocument>";
    let flat_odt = "<?xml version='1.0'?><office:document office:mimetype=\"application/vnd.oasis.opendocument.text\"><office:body><office:text><text:p>flat words</text:p></office:text></office:body></office:document>";
    let book = package(&xlsx());
    let embedded = archive(&[
        ("[Content_Types].xml", b"<Types/>"),
        ("word/document.xml", b"<w:document><w:body><w:p><w:r><w:object><o:OLEObject r:id='b'/></w:object></w:r></w:p></w:body></w:document>"),
        ("word/_rels/document.xml.rels", relations(&[("b", "package", "embeddings/b.xlsx")]).as_bytes()),
        ("word/embeddings/b.xlsx", &book),
    ]);
    let shaded = format!(
        "<w:tbl><w:tr><w:tc><w:tcPr><w:shd w:val='clear' w:fill='1F3864'/></w:tcPr>{}</w:tc></w:tr></w:tbl><w:p><w:pPr><w:shd w:val='clear' w:fill='000000'/></w:pPr>{}</w:p><w:tbl><w:tblPr><w:tblStyle w:val='x'/></w:tblPr><w:tr><w:tc>{}</w:tc></w:tr></w:tbl>",
        p("<w:color w:val='FFFFFF'/>", "head"),
        run("<w:color w:val='FFFFFF'/>", "dark paragraph"),
        p("<w:color w:val='FFFFFF'/>", "styled"),
    );
    let levels = "<text:list-style style:name='L'><text:list-level-style-number text:level='1' style:num-format='I' style:num-suffix='.'/><text:list-level-style-number text:level='2' style:num-format='1' text:display-levels='2' style:num-suffix=')'/></text:list-style>";
    let item = |inner: &str| format!("<text:list-item>{inner}</text:list-item>");
    let list = format!(
        "<text:list text:style-name='L'>{}</text:list>",
        item(&format!("<text:p>a</text:p><text:list>{}</text:list>", item("<text:p>b</text:p>")))
    );
    let more = "<text:list text:style-name='L' text:continue-numbering='true'><text:list-item><text:p>c</text:p></text:list-item></text:list>";
    vec![
        hidden("hidden shape", "a.docx", of("<w:p><w:r><w:t>seen</w:t></w:r><w:r><w:drawing><wp:anchor><wp:docPr hidden='1'/><w:txbxContent><w:p><w:r><w:t>unseen</w:t></w:r></w:p></w:txbxContent></wp:anchor></w:drawing></w:r><w:r><w:pict><v:shape style='width:9pt; visibility: hidden'><w:txbxContent><w:p><w:r><w:t>unshown</w:t></w:r></w:p></w:txbxContent></v:shape></w:pict></w:r></w:p>"), &["seen"], &["unseen", "unshown"]),
        row("bytes before the archive", "a.docx", [b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), of(&p("", "late words"))].concat(), &["late words"], &[]),
        row(
            "tracked changes",
            "a.docx",
            of(
                "<w:p><w:pPr><w:rPr><w:del/></w:rPr></w:pPr><w:r><w:t>one </w:t></w:r><w:del><w:r><w:delText>old</w:delText></w:r></w:del></w:p><w:p><w:ins><w:r><w:t>paragraph</w:t></w:r></w:ins></w:p>",
            ),
            &["one paragraph"],
            &["old"],
        ),
        row(
            "labels without a number",
            "a.docx",
            listed(
                &[("none", "Note:", ""), ("none", "", ""), ("custom' w:format='001, 002, …", "%3.", "")],
                &[(0, "a"), (1, "b"), (2, "c")],
            ),
            &["Note: a", "  b\n", "001. c"],
            &["- b"],
        ),
        row(
            "numbers of items without words",
            "a.docx",
            listed(&[("decimal", "%1.", "")], &[(0, "a"), (0, ""), (0, "c")]),
            &["1. a", "3. c"],
            &["2."],
        ),
        row(
            "numbers that are all of a cell",
            "a.docx",
            with(
                &["Brest", "Cuxhaven"].map(|port| format!("<w:tbl><w:tr><w:tc><w:p><w:pPr><w:numPr><w:numId w:val='1'/></w:numPr></w:pPr></w:p></w:tc><w:tc>{}</w:tc></w:tr></w:tbl>", p("", port))).concat(),
                &[("word/numbering.xml", "<w:numbering><w:abstractNum w:abstractNumId='1'><w:lvl w:ilvl='0'><w:numFmt w:val='decimal'/><w:lvlText w:val='%1.'/></w:lvl></w:abstractNum><w:num w:numId='1'><w:abstractNumId w:val='1'/></w:num></w:numbering>")],
                &[("n", "numbering", "numbering.xml")],
            ),
            &["1. | Brest", "2. | Cuxhaven"],
            &[],
        ),
        row(
            "lists that are numbered by others",
            "a.docx",
            with(
                "<w:p><w:pPr><w:pStyle w:val='A'/></w:pPr><w:r><w:t>one</w:t></w:r></w:p><w:p><w:pPr><w:pStyle w:val='B'/></w:pPr><w:r><w:t>two</w:t></w:r></w:p><w:p><w:pPr><w:numPr><w:numId w:val='3'/></w:numPr></w:pPr><w:r><w:t>three</w:t></w:r></w:p>",
                &[
                    (
                        "word/numbering.xml",
                        "<w:numbering><w:abstractNum w:abstractNumId='0'><w:numStyleLink w:val='S'/></w:abstractNum><w:abstractNum w:abstractNumId='1'><w:styleLink w:val='S'/><w:lvl w:ilvl='0'><w:numFmt w:val='decimal'/><w:pStyle w:val='A'/><w:lvlText w:val='§ %1'/></w:lvl><w:lvl w:ilvl='1'><w:numFmt w:val='decimal'/><w:pStyle w:val='B'/><w:lvlText w:val='%1.%2'/></w:lvl></w:abstractNum>\
                         <w:num w:numId='1'><w:abstractNumId w:val='0'/></w:num><w:num w:numId='3'><w:abstractNumId w:val='1'/><w:lvlOverride w:ilvl='0'><w:lvl w:ilvl='0'><w:numFmt w:val='upperRoman'/><w:lvlText w:val='Annex %1:'/></w:lvl></w:lvlOverride></w:num></w:numbering>",
                    ),
                    (
                        "word/styles.xml",
                        "<w:styles><w:style w:styleId='A'><w:pPr><w:numPr><w:numId w:val='1'/></w:numPr></w:pPr></w:style><w:style w:styleId='B'><w:pPr><w:numPr><w:numId w:val='1'/></w:numPr></w:pPr></w:style></w:styles>",
                    ),
                ],
                &[("n", "numbering", "numbering.xml"), ("s", "styles", "styles.xml")],
            ),
            &["§ 1 one", "1.1 two", "Annex II: three"],
            &[],
        ),
        row(
            "a large first letter, ways that nobody knows",
            "a.docx",
            of(
                "<w:p><w:pPr><w:framePr w:dropCap='drop'/></w:pPr><w:r><w:t>E</w:t></w:r></w:p><w:p><w:r><w:t>bb.</w:t></w:r></w:p><w:p><w:r><mc:AlternateContent><mc:Choice Requires='new'><new:x/></mc:Choice><mc:Fallback><w:t>old way</w:t></mc:Fallback></mc:AlternateContent></w:r></w:p>",
            ),
            &["Ebb.", "old way"],
            &[],
        ),
        row(
            "legal numbering",
            "a.docx",
            listed(
                &[("upperRoman", "Article %1", ""), ("decimal", "%1.%2", legal)],
                &[(0, "x"), (1, "y")],
            ),
            &["Article I x", "1.1 y"],
            &[],
        ),
        row(
            "numbers of the East",
            "a.docx",
            listed(
                &[("chineseCounting", "第%1条", ""), ("decimalEnclosedCircle", "%2", "")],
                &[(0, "x"), (1, "y")],
            ),
            &["第一条 x", "① y"],
            &[],
        ),
        row(
            "numbers of other scripts",
            "a.docx",
            listed(
                &[
                    ("hebrew1", "%1.", ""),
                    ("thaiNumbers", "%2.", ""),
                    ("ideographLegalTraditional", "%3.", ""),
                ],
                &[(0, "x"), (1, "y"), (2, "z")],
            ),
            &["א. x", "๑. y", "壹. z"],
            &[],
        ),
        row(
            "levels that go on",
            "a.docx",
            listed(
                &[("decimal", "%1.", ""), ("decimal", "%1.%2", "<w:lvlRestart w:val='0'/>")],
                &[(0, "a"), (1, "b"), (0, "c"), (1, "d")],
            ),
            &["1.1 b", "2.2 d"],
            &[],
        ),
        row("an embedded book", "a.docx", embedded, &["Brest | 7.5"], &[]),
        row(
            "a diagram in its order",
            "a.docx",
            with(
                "<w:p><w:r><w:drawing><dgm:relIds r:dm='d'/></w:drawing></w:r></w:p>",
                &[("word/d.xml", diagram)],
                &[("d", "diagramData", "d.xml")],
            ),
            &["ebb\nflow"],
            &[],
        ),
        row(
            "struck text",
            "a.docx",
            of(&format!("<w:p>{}{}</w:p>", run("<w:strike/>", "500"), run("", " 650"))),
            &["~~500~~ 650"],
            &[],
        ),
        row(
            "smart tags, controls",
            "a.docx",
            of(&format!(
                "<w:p>{}<w:smartTag>{}</w:smartTag><w:sdt><w:sdtContent>{}</w:sdtContent></w:sdt></w:p>",
                run("", "a"),
                run("", "b"),
                run("", "c")
            )),
            &["abc"],
            &[],
        ),
        row("a field's code", "a.docx", of(&nested), &["a no z"], &["inner", "IF"]),
        row(
            "a field that is a link",
            "a.docx",
            of(&format!(
                "<w:p>{}</w:p>",
                field(" HYPERLINK \"https://a.org/x\" ", &run("", "terms"))
            )),
            &["[terms](https://a.org/x)"],
            &[],
        ),
        row(
            "a field without an end",
            "a.docx",
            of(
                "<w:p><w:r><w:fldChar w:fldCharType='begin'/></w:r><w:r><w:instrText>TOC</w:instrText></w:r></w:p><w:p><w:r><w:t>not swallowed</w:t></w:r></w:p>",
            ),
            &["not swallowed"],
            &[],
        ),
        row(
            "ruby",
            "a.docx",
            of(
                "<w:p><w:r><w:ruby><w:rt><w:r><w:t>kan</w:t></w:r></w:rt><w:rubyBase><w:r><w:t>漢</w:t></w:r></w:rubyBase></w:ruby></w:r></w:p>",
            ),
            &["漢(kan)"],
            &[],
        ),
        row("capitals", "a.docx", of(&p("<w:caps/>", "Total")), &["TOTAL"], &[]),
        row(
            "letters drawn as a shape",
            "a.docx",
            of(
                "<w:p><w:r><w:pict><v:shape><v:textpath string='DRAFT'/></v:shape></w:pict></w:r></w:p>",
            ),
            &["DRAFT"],
            &[],
        ),
        row(
            "columns before a row",
            "a.docx",
            of(&format!(
                "<w:tbl><w:tr><w:tc>{0}</w:tc><w:tc>{0}</w:tc></w:tr><w:tr><w:trPr><w:gridBefore w:val='1'/></w:trPr><w:tc>{1}</w:tc></w:tr></w:tbl>",
                p("", "x"),
                p("", "below")
            )),
            &[" | below"],
            &[],
        ),
        hidden(
            "white on white, tiny",
            "a.docx",
            of(&[
                p("", "seen"),
                p("<w:color w:val='FFFFFF'/>", "white"),
                p("<w:sz w:val='2'/>", "tiny"),
                p("<w:vanish/>", "gone"),
            ]
            .concat()),
            &["seen"],
            &["white", "tiny", "gone"],
        ),
        row(
            "white on a dark ground",
            "a.docx",
            of(&shaded),
            &["head", "dark paragraph", "styled"],
            &[],
        ),
        Row {
            kind: "a broken part",
            name: "a.docx",
            document: broken,
            right: Right::Unread { has: vec!["body stays"] },
        },
        Row {
            kind: "broken relations",
            name: "a.docx",
            document: broken_relations,
            right: Right::Unread { has: vec!["body stays"] },
        },
        row("a flat package", "a.xml", flat, &["flat words"], &["pkg"]),
        row("Word's XML of 2003", "a.doc", of_2003, &["words of 2003"], &["w:p"]),
        row("OpenDocument in one file", "a.fodt", flat_odt, &["flat words"], &["office"]),
        row(
            "documents within",
            "a.odt",
            package(&texts(vec![
                ("mimetype", "application/vnd.oasis.opendocument.text".to_owned()),
                ("content.xml", "<c><office:body><text:p><draw:frame><draw:object xlink:href='./Object 1'/></draw:frame></text:p></office:body></c>".to_owned()),
                ("Object 1/content.xml", "<c><office:body><office:chart><chart:title><text:p>Tides</text:p></chart:title><table:table><table:table-row><table:table-cell><text:p>May</text:p></table:table-cell><table:table-cell><text:p>7.5</text:p></table:table-cell></table:table-row></table:table></office:chart></office:body></c>".to_owned()),
            ])),
            &["Tides", "May | 7.5"],
            &[],
        ),
        Row {
            kind: "documents within that are lost",
            name: "a.odt",
            document: odt("", "<text:p>stays<draw:frame><draw:object-ole xlink:href='./Object 2'/></draw:frame></text:p>"),
            right: Right::Unread { has: vec!["stays"] },
        },
        row(
            "letters in whichever color is seen",
            "a.docx",
            of(&format!(
                "{}{}",
                p("<w:color w:val='auto'/><w:shd w:val='clear' w:fill='000000'/>", "on black"),
                p("<w:rStyle w:val='x'/><w:color w:val='auto'/>", " on paper")
            )),
            &["on black", "on paper"],
            &[],
        ),
        row(
            "letters in whichever color is seen",
            "a.odt",
            odt(
                &[
                    style("W", "fo:color='#ffffff'"),
                    style("A", "style:use-window-font-color='true'"),
                ]
                .concat(),
                "<text:p><text:span text:style-name='W'><text:span text:style-name='A'>automatic</text:span></text:span></text:p>",
            ),
            &["automatic"],
            &[],
        ),
        row(
            "marks of struck text that are text",
            "a.docx",
            of(&format!(
                "{}<w:p>{}{}</w:p>",
                p("", "a ~~~~ b"),
                run("<w:strike/>", "5"),
                run("<w:b/><w:strike/>", "00")
            )),
            &["a ~~~~ b", "~~500~~"],
            &[],
        ),
        hidden(
            "marks of hidden text that are text",
            "a.docx",
            of(&format!(
                "<w:p>{}{}{}</w:p>",
                run("", "x][hidden: y"),
                run("<w:vanish/>", "un"),
                run("<w:b/><w:vanish/>", "seen")
            )),
            &["x][hidden: y"],
            &[],
        ),
        row(
            "letters behind the twenty-sixth",
            "a.odt",
            odt(
                "<text:list-style style:name='L'><text:list-level-style-number text:level='1' style:num-format='a' text:start-value='28'/></text:list-style>\
                 <text:list-style style:name='S'><text:list-level-style-number text:level='1' style:num-format='a' style:num-letter-sync='true' text:start-value='28'/></text:list-style>",
                "<text:list text:style-name='L'><text:list-item><text:p>one</text:p></text:list-item></text:list>\
                 <text:list text:style-name='S'><text:list-item><text:p>other</text:p></text:list-item></text:list>",
            ),
            &["ab. one", "bb. other"],
            &[],
        ),
        row(
            "struck text, links",
            "a.odt",
            odt(
                &style("S", "style:text-line-through-style='solid'"),
                "<text:p><text:span text:style-name='S'>500</text:span> 650 <text:a xlink:href='https://a.org/o'>site</text:a></text:p>",
            ),
            &["~~500~~ 650 [site](https://a.org/o)"],
            &[],
        ),
        row(
            "ruby, capitals",
            "a.odt",
            odt(
                &style("S", "fo:text-transform='uppercase'"),
                "<text:p><text:ruby><text:ruby-base>漢</text:ruby-base><text:ruby-text>kan</text:ruby-text></text:ruby> <text:span text:style-name='S'>sum</text:span></text:p>",
            ),
            &["漢(kan) SUM"],
            &[],
        ),
        row(
            "levels that show those above",
            "a.odt",
            odt(levels, &(list + more)),
            &["I. a", "I.1) b", "II. c"],
            &[],
        ),
        hidden(
            "hidden and white words",
            "a.odt",
            odt(
                &[style("H", "text:display='none'"), style("W", "fo:color='#ffffff'"), style("T", "fo:font-size='1pt'")].concat(),
                "<text:p>seen <text:span text:style-name='H'>gone</text:span> <text:span text:style-name='W'>white</text:span> <text:span text:style-name='T'>tiny</text:span></text:p><text:section text:display='none'><text:p>section</text:p></text:section>",
            ),
            &["seen"],
            &["gone", "white", "section", "tiny"],
        ),
        row(
            "fields that number paragraphs",
            "a.docx",
            of(&[
                numbered("AUTONUM", "", "high"),
                "<w:p><w:fldSimple w:instr=' AUTONUM \\s ) '/><w:r><w:t> low</w:t></w:r></w:p>".to_owned(),
                numbered("AUTONUMLGL", "<w:pPr><w:pStyle w:val='Heading1'/></w:pPr>", "Ebb"),
                numbered("AUTONUMLGL", "<w:pPr><w:pStyle w:val='Heading2'/></w:pPr>", "Flow"),
                numbered("LISTNUM \\l 2", "", "item"),
            ]
            .concat()),
            &["1. high\n2) low\n\n# 3. Ebb\n\n## 3.1. Flow\na) item"],
            &[],
        ),
        row(
            "changed and moved parts of formulas",
            "a.docx",
            of("<w:p><m:oMath><m:r><w:rPr><w:del/></w:rPr><m:t>old</m:t></m:r><m:r><w:rPr><w:ins/></w:rPr><m:t>new</m:t></m:r><m:phant><m:phantPr><m:zeroWid/></m:phantPr><m:e><m:r><m:t>+x</m:t></m:r></m:e></m:phant><m:phant><m:phantPr><m:show m:val='0'/></m:phantPr><m:e><m:r><m:t>gone</m:t></m:r></m:e></m:phant></m:oMath></w:p>"),
            &["new+x"],
            &["old", "gone"],
        ),
        row(
            "line breaks of the XML",
            "a.docx",
            of("<w:p><w:r><w:t>\n  high\n </w:t></w:r><w:r><w:t xml:space='preserve'> and\nlow</w:t></w:r></w:p>"),
            &["high and low"],
            &[],
        ),
    ]
}
