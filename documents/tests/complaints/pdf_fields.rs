//! Fields, layers and letters of PDF pages.

use super::{
    Row, hidden,
    pdf::{line, page, stream},
    row,
};

/// Adds entries to the catalog and to the page of a file. Its offsets no longer fit.
fn with_entries(file: Vec<u8>, catalog: &str, of_page: &str) -> Vec<u8> {
    let file = String::from_utf8(file).unwrap();
    let file = file.replace("/Type /Catalog", &format!("/Type /Catalog {catalog}"));
    file.replace("/Type /Page /Parent", &format!("/Type /Page {of_page} /Parent")).into_bytes()
}

pub(crate) fn rows() -> Vec<Row> {
    let field = |more: &str| {
        let field = format!(
            "<< /Type /Annot /Subtype /Widget /FT /Tx /T (f) /V (DE4412) /Rect [120 695 300 712] {more} >>"
        );
        let letters: String =
            "E4412".chars().map(|letter| format!("30 0 Td ({letter}) Tj ")).collect();
        let look = stream(
            "/Type /XObject /Subtype /Form /BBox [0 0 180 17] /Resources << /Font << /F1 5 0 R >> >>",
            &format!("BT /F1 12 Tf 10 4 Td (D) Tj {letters}ET"),
        );
        with_entries(
            page(&line(72, 700, "IBAN"), &["null".to_owned(), field, look]),
            "/AcroForm << /Fields [7 0 R] >>",
            "/Annots [7 0 R]",
        )
    };
    let layers = with_entries(
        page(
            &format!("{}/OC /L BDC {}EMC /Fm Do", line(72, 700, "seen"), line(72, 650, "off")),
            &[
                "null".to_owned(),
                "<< /Type /OCG /Name (l) >>".to_owned(),
                stream(
                    "/Type /XObject /Subtype /Form /OC 7 0 R /BBox [0 0 612 792] /Resources << /Font << /F1 5 0 R >> >>",
                    &line(72, 600, "within"),
                ),
            ],
        ),
        "/OCProperties << /OCGs [7 0 R] /D << /OFF [7 0 R] >> >>",
        "",
    );
    let layers = String::from_utf8(layers).unwrap();
    let layers = layers.replace(
        "/Resources << /Font << /F1 5 0 R /F2",
        "/Resources << /Properties << /L 7 0 R >> /XObject << /Fm 8 0 R >> /Font << /F1 5 0 R /F2",
    );
    vec![
        row(
            "a box for each letter",
            "a.pdf",
            field("/Ff 16777216 /AP << /N 8 0 R >>"),
            &["IBAN DE4412"],
            &[],
        ),
        hidden("a field that is not shown", "a.pdf", field("/F 2"), &["IBAN"], &["DE4412"]),
        hidden("layers that are off", "a.pdf", layers, &["seen"], &["off", "within"]),
        row(
            "short words set apart",
            "a.pdf",
            page(
                &format!(
                    "{}BT /F1 12 Tf 2 Tc 72 680 Td (Fees for) Tj 0 -20 Td (line C) Tj ET {}",
                    line(72, 700, "above"),
                    line(72, 600, "below"),
                ),
                &[],
            ),
            &["Fees for", "line C"],
            &[],
        ),
    ]
}
