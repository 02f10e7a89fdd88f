//! Documents made by hand.
#![allow(dead_code, reason = "each test file is a program of its own and uses a part of this")]
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::io::{Cursor, Write};

use zip::{ZipWriter, write::SimpleFileOptions};

/// A PDF of these objects, the first being the catalogue, with a table of where they are.
pub(crate) fn pdf_of(objects: &[String], trailer: &str) -> Vec<u8> {
    let mut pdf = b"%PDF-1.7\n".to_vec();
    let mut places = Vec::new();
    for (number, object) in (1..).zip(objects) {
        places.push(pdf.len());
        pdf.extend(format!("{number} 0 obj\n{object}\nendobj\n").bytes());
    }
    let start = pdf.len();
    pdf.extend(format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).bytes());
    for place in places {
        pdf.extend(format!("{place:010} 00000 n \n").bytes());
    }
    pdf.extend(
        format!(
            "trailer\n<< /Size {} /Root 1 0 R {trailer} >>\nstartxref\n{start}\n%%EOF\n",
            objects.len() + 1
        )
        .bytes(),
    );
    pdf
}

/// A PDF with a line of text on each page; an empty line is a page without text.
pub(crate) fn pdf(pages: &[&str]) -> Vec<u8> {
    let kids: Vec<String> = (0..pages.len()).map(|page| format!("{} 0 R", 4 + 2 * page)).collect();
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        format!("<< /Type /Pages /Count {} /Kids [{}] >>", pages.len(), kids.join(" ")),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
            .to_owned(),
    ];
    for (number, text) in pages.iter().enumerate() {
        let content = if text.is_empty() {
            "0 0 m 9 9 l S".to_owned()
        } else {
            format!("BT /F1 12 Tf 72 720 Td ({text}) Tj ET")
        };
        let resources = "/Resources << /Font << /F1 3 0 R >> >> /MediaBox [0 0 612 792]";
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R {resources} /Contents {} 0 R >>",
            5 + 2 * number
        ));
        objects.push(format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()));
    }
    pdf_of(&objects, "")
}

/// An archive with these files.
pub(crate) fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in files {
        writer.start_file(*name, SimpleFileOptions::default()).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// A DOCX with these paragraphs.
pub(crate) fn docx(paragraphs: &[&str]) -> Vec<u8> {
    let paragraphs: String =
        paragraphs.iter().map(|text| format!("<w:p><w:r><w:t>{text}</w:t></w:r></w:p>")).collect();
    let body = format!(
        "<?xml version=\"1.0\"?><w:document xmlns:w=\"x\"><w:body>{paragraphs}</w:body></w:document>"
    );
    archive(&[("[Content_Types].xml", b"<Types/>"), ("word/document.xml", body.as_bytes())])
}
