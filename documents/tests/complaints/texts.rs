//! Plain text, notebooks, e-mail.

use super::{Row, hidden, row, unread};

const MAIL: &str = "From: Ann <a@e.org>\r\nTo: b@e.org\r\nSubject: S\r\nMIME-Version: 1.0\r\nMessage-ID: <1@e>\r\n";

fn mail(headers: &str, body: &str) -> String {
    format!("{MAIL}{headers}\r\n\r\n{}", body.replace('\n', "\r\n"))
}

pub(crate) fn rows() -> Vec<Row> {
    let units = |text: &str, of: fn(u16) -> [u8; 2]| -> Vec<u8> {
        text.encode_utf16().flat_map(of).collect()
    };
    let wide: Vec<u8> = "Wide größe".chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
    let tags: String =
        "obey".chars().filter_map(|c| char::from_u32(0xe_0000 + u32::from(c))).collect();
    let picture =
        format!("{{\"t\":\"words\",\"p\":\"data:image/png;base64,{}\"}}", "QUJD".repeat(900));
    let notebook = serde_json::json!({"nbformat": 4, "cells": [
        {"cell_type": "markdown", "source": ["# Tides\n", format!("![chart](data:image/png;base64,{})", "QUJD".repeat(50))]},
        {"cell_type": "code", "source": "plot()", "outputs": [
            {"output_type": "display_data", "data": {"image/png": "QUJD"}},
            {"output_type": "display_data", "data": {"text/html": "<table><tr><td>ebb<td>7</table>"}},
        ]},
    ]});
    let flowed = mail(
        "Content-Type: text/plain; format=flowed; delsp=yes",
        "con- \ntinued \n> quoted \n> on\n",
    );
    let apple = mail("Content-Type: text/plain", "the message");
    let deep = mail("Content-Type: text/html", &"<div>".repeat(2_100));
    let flat = |parts: &str| {
        format!(
            "<?xml version='1.0'?><pkg:package xmlns:pkg='http://schemas.microsoft.com/office/2006/xmlPackage'>{parts}</pkg:package>"
        )
    };
    let chunk = flat(
        "<pkg:part pkg:name='/word/_rels/document.xml.rels'><pkg:xmlData><Relationships><Relationship Id='c' Type='x/aFChunk' Target='c.txt'/></Relationships></pkg:xmlData></pkg:part>\
        <pkg:part pkg:name='/word/c.txt'><pkg:binaryData>RWJi\nIGFuZCBmbG93</pkg:binaryData></pkg:part>\
        <pkg:part pkg:name='/word/document.xml'><pkg:xmlData><w:document><w:body><w:p><w:r><w:t>above</w:t></w:r></w:p><w:altChunk r:id='c'/></w:body></w:document></pkg:xmlData></pkg:part>",
    );
    let drawing = "<?xml version='1.0'?><office:document office:mimetype='application/vnd.oasis.opendocument.graphics'><office:body><office:drawing><draw:page><draw:frame><draw:text-box><text:p>drawn</text:p></draw:text-box></draw:frame></draw:page></office:drawing></office:body></office:document>";
    let korean = b"\x1b$)C\x0e0!3*\x0f x";
    vec![
        row("words that begin as a font does", "a.csv", "OTTO;Versand\n1;2\n", &["OTTO;Versand"], &[]),
        row("words about PDF", "notes.md", "It begins with %PDF-1.7.", &["begins with %PDF"], &[]),
        unread("a message whose page is too deep", "a.eml", deep, &["From: Ann", "nested"]),
        row("files in one file of XML", "a.xml", chunk, &["above\nEbb and flow"], &["RWJi"]),
        row("a drawing in one file of XML", "a.fodg", drawing, &["drawn"], &["office"]),
        row("UTF-32", "a.txt", wide, &["Wide größe"], &[]),
        row(
            "UTF-16 without a mark",
            "a.txt",
            units("漢字と、かなと、一つの文。\n", u16::to_be_bytes),
            &["漢字と、かなと、一つの文。"],
            &[],
        ),
        row(
            "UTF-16 without a mark",
            "a.txt",
            units("Прилив и отлив", u16::to_le_bytes),
            &["Прилив и отлив"],
            &[],
        ),
        row(
            "code page 437",
            "a.txt",
            b"Gr\x94\xe1e, 5 m\xfd, \x9abung".to_vec(),
            &["Größe, 5 m², Übung"],
            &[],
        ),
        row(
            "code page 850",
            "a.txt",
            b"S\xc6o Tom\x82, \xab m\xfc, \x9abung".to_vec(),
            &["São Tomé, ½ m³, Übung"],
            &[],
        ),
        row(
            "Mac Roman",
            "a.txt",
            b"Le caf\x8e co\x9ete tr\x8fs cher \x88 l\xd5\x8et\x8e".to_vec(),
            &["Le café coûte très cher à l’été"],
            &[],
        ),
        row("fields of a log", "a.log", b"8=FIX.4.4\x0135=D\x01\n".repeat(3), &["35=D"], &[]),
        row("overstrikes", "a.txt", b"N\x08NA\x08A _\x08l\n".to_vec(), &["NA l"], &["\u{8}"]),
        row(
            "colors of a terminal",
            "a.log",
            b"\x1b[31mred\x1b[0m \x1b[1;32mok\x1b[K\n".to_vec(),
            &["red ok"],
            &["[31m", "[K"],
        ),
        row(
            "a file that is filled up",
            "a.txt",
            b"Ebb.\r\n\x1a\0\0\0".to_vec(),
            &["Ebb."],
            &["\u{1a}"],
        ),
        row("base 64 in JSON", "a.json", picture, &["words", "[image]"], &["QUJDQUJD"]),
        row(
            "notebooks",
            "a.ipynb",
            notebook.to_string(),
            &["# Tides\n![chart]([image])", "plot()", "ebb | 7"],
            &["QUJD", "<td>"],
        ),
        hidden("letters that no program shows", "a.txt", format!("seen{tags}."), &["seen."], &[]),
        row("flowed text", "a.eml", flowed, &["con-tinued", "> quoted"], &[]),
        row(
            "Apple's mail",
            "a.emlx",
            format!("{}\n{apple}<?xml version=\"1.0\"?><plist/>", apple.len()),
            &["the message"],
            &["plist"],
        ),
        row(
            "mail in UTF-16",
            "a.eml",
            [
                &b"\xff\xfe"[..],
                &units(&mail("Content-Type: text/plain", "größe"), u16::to_le_bytes),
            ]
            .concat(),
            &["größe", "From: Ann"],
            &[],
        ),
        row(
            "a saved page that is called a text",
            "a.doc",
            "MIME-Version: 1.0\nContent-Type: multipart/related; boundary=b\n\n--b\nContent-Type: text/html\n\n<h1>Team</h1>\n--b--\n",
            &["# Team"],
            &["--b"],
        ),
        row(
            "Korean in seven bits",
            "a.eml",
            [mail("Content-Type: text/plain; charset=iso-2022-kr", "").as_bytes(), korean].concat(),
            &["가나 x"],
            &[],
        ),
        row(
            "names in words of their own",
            "a.eml",
            mail(
                "Content-Type: multipart/mixed; boundary=b",
                "--b\nContent-Type: text/plain\nContent-Disposition: attachment; filename=\"=?iso-8859-1?Q?Gr=F6=DFe?= =?iso-8859-1?Q?_12.txt?=\"\n\nwithin\n--b--",
            ),
            &["Größe 12.txt", "within"],
            &[],
        ),
        row(
            "names as they stand",
            "a.eml",
            b"From: J\xf6rg <j@e.org>\r\nSubject: Gr\xfc\xdfe\r\nMIME-Version: 1.0\r\nMessage-ID: <1@e>\r\nContent-Type: text/plain; charset=iso-8859-1\r\n\r\n\xdcber".to_vec(),
            &["From: Jörg <j@e.org>\nSubject: Grüße", "Über"],
            &[],
        ),
        row(
            "a text that only says that there is HTML",
            "a.eml",
            mail(
                "Content-Type: multipart/alternative; boundary=b",
                "--b\nContent-Type: text/plain\n\nYour program shows no HTML.\n--b\nContent-Type: text/x-amp-html\n\n<p>again</p>\n--b\nContent-Type: text/html\n\n<p>The rent is 950 EUR from May on, to be paid on the third day of each month to the account that you know; the heating comes on top of it.</p>\n--b--\n",
            ),
            &["950 EUR"],
            &["shows no HTML", "again"],
        ),
        row(
            "a text without the table of the HTML",
            "a.eml",
            mail(
                "Content-Type: multipart/alternative; boundary=b",
                "--b\nContent-Type: text/plain\n\nThe rent is due on the third day; the sums are below.\n--b\nContent-Type: text/html\n\n<p>The rent is due on the third day; the sums are below.<table><tr><td>May<td>950 EUR</table>\n--b--\n",
            ),
            &["sums are below.\n\nMay | 950 EUR"],
            &[],
        ),
        row(
            "a text that says something else than the HTML",
            "a.eml",
            mail(
                "Content-Type: multipart/alternative; boundary=b",
                "--b\nContent-Type: text/plain\n\nHigh water at noon, low water at six in the evening.\n--b\nContent-Type: text/html\n\n<p>See the picture <img src='cid:1' alt='tides'>\n--b--\n",
            ),
            &["High water at noon", "See the picture tides"],
            &[],
        ),
        row(
            "lines of an old Mac",
            "a.eml",
            mail("Content-Type: text/plain", "one\ntwo").replace("\r\n", "\r"),
            &["From: Ann", "one\ntwo"],
            &[],
        ),
        row(
            "Chinese in seven bits",
            "a.eml",
            mail("Content-Type: text/plain; charset=hz-gb-2312", "~~ ~{<:Ky2;~}~\n end"),
            &["~ 己所不 end"],
            &[],
        ),
        row(
            "a short text beside the same as HTML",
            "a.eml",
            mail(
                "Content-Type: multipart/alternative; boundary=b",
                "--b\nContent-Type: text/plain\n\nCome at six.\n--b\nContent-Type: text/html\n\n<p>Come at <b>six</b>.</p>\n--b--\n",
            ),
            &["Come at six."],
            &["**"],
        ),
        row(
            "a piece of a page without a name",
            "a.eml",
            mail(
                "Content-Type: multipart/mixed; boundary=b",
                "--b\nContent-Type: text/plain\n\nsee\n--b\nContent-Type: text/html\nContent-Disposition: attachment\n\n<p>Fee: <b>7</b></p>\n--b--\n",
            ),
            &["see", "Fee: 7"],
            &["<p>"],
        ),
        row(
            "files in the text",
            "a.eml",
            mail("Content-Type: text/plain", "See:\n\nbegin 644 tide.txt\n#0V%T\n`\nend\n"),
            &["See:", "## Attachment: tide.txt\n\nCat"],
            &["0V%T"],
        ),
    ]
}
