//! PDF: faults that other readers repair, and content that is not in lines of text.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs, reason = "a test")]

mod common;

use common::{pdf, pdf_of};
use tidegate_documents::{DRAWS_PAGES, Extracted, Limits, Unreadable, extract, left_out};

fn read(bytes: &[u8]) -> Result<Extracted, Unreadable> {
    extract(bytes, "a.pdf", &Limits::default())
}

fn text(bytes: &[u8]) -> String {
    read(bytes).unwrap().text
}

/// Makes one page with this content and these entries. Further objects begin at number 6.
fn page(content: &str, entries: &str, more: &[&str]) -> Vec<u8> {
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Count 1 /Kids [3 0 R] >>".to_owned(),
        format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> /XObject << /I 6 0 R >> >> {entries} >>"
        ),
        stream("", content),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
            .to_owned(),
    ];
    objects.extend(more.iter().map(|object| (*object).to_owned()));
    pdf_of(&objects, "")
}

fn stream(entries: &str, content: &str) -> String {
    format!("<< {entries} /Length {} >>\nstream\n{content}\nendstream", content.len())
}

const PICTURE: &str = "<< /Type /XObject /Subtype /Image /Width 1 /Height 1 /ColorSpace /DeviceGray /BitsPerComponent 8 /Length 1 >>\nstream\nx\nendstream";

/// Hidden text may be meant for a model alone.
#[test]
fn letters_that_nobody_sees_are_left_out_and_counted() {
    let line = |y: u32, text: &str| format!("BT /F1 12 Tf 72 {y} Td ({text}) Tj ET\n");
    let content = [
        line(700, "seen"),
        format!("1 g {} 0 g", line(680, "white")),
        format!(
            "0 0 1 rg 60 650 300 20 re f {} 1 g {} 0 g",
            line(655, "blue"),
            "BT /F1 12 Tf 200 656 Td (clear) Tj ET"
        ),
        format!("{} 0 g 60 625 300 20 re f", line(630, "black bar")),
        format!("q 0 0 5 5 re W n {} Q", line(600, "clipped")),
        // Its background is drawn below it, letter by letter.
        format!("1 g {} 0 g {}", line(520, "halo"), line(520, "halo")),
        format!("BT 3 Tr /F1 12 Tf 72 580 Td (unpainted) Tj ET BT 0 Tr ET {}", line(560, "end")),
        "BT /F1 0.5 Tf 72 540 Td (tiny) Tj ET".to_owned(),
        // Two rectangles make a frame.
        format!("60 495 300 20 re 61 496 298 18 re f* {}", line(500, "framed")),
        // A cover with a small hole: of two words, one is seen.
        format!(
            "{} BT /F1 12 Tf 250 460 Td (seal) Tj ET 1 g 0 410 600 70 re 248 456 40 16 re f* 0 g",
            line(460, "sunk")
        ),
        format!("{} BT 3 Tr /F1 12 Tf 72 480 Td (copied) Tj 0 Tr ET", line(480, "copied")),
    ]
    .join("\n");
    let read = read(&page(&content, "", &[PICTURE])).unwrap();
    let seen: Vec<_> = read.text.split_whitespace().collect();
    assert_eq!(seen, ["seen", "clear", "end", "halo", "framed", "copied", "seal"]);
    let hidden = "white blue black bar clipped unpainted tiny sunk".replace(' ', "").len();
    assert_eq!(read.left_out.count(left_out::Kind::HiddenText), hidden as u64);
    // The text of a scan is drawn invisibly over its picture.
    let scan = "/I Do BT 3 Tr /F1 12 Tf 72 700 Td (what the scan says) Tj ET";
    assert_eq!(text(&page(scan, "", &[PICTURE])), "what the scan says");
}

#[test]
fn slanted_and_letterspaced_words_are_read_by_themselves() {
    let lines: String = (0..6)
        .map(|at| format!("BT /F1 12 Tf 72 {} Td (line {at} of the page) Tj ET\n", 700 - 20 * at))
        .collect();
    let content = format!(
        "{lines} BT /F1 60 Tf 0.8 0.6 -0.6 0.8 80 600 Tm (DRAFT) Tj ET \
         BT /F1 12 Tf 6 Tc 72 500 Td (SUMMARY) Tj ET BT 0 Tc /F1 12 Tf 72 480 Td (a b c d e f g) Tj ET"
    );
    let expected: String = (0..6).map(|at| format!("line {at} of the page\n")).collect();
    let read = text(&page(&content, "", &[PICTURE]));
    assert!(read.starts_with(&expected), "{read}");
    assert!(read.contains("\n\nSUMMARY\na b c d e f g"), "{read}");
    assert!(read.ends_with("\n\nDRAFT"), "{read}");
}

/// A font's table gives meanings to its private-use codes and to control characters.
#[test]
fn signs_and_ligatures_that_only_their_font_knows_are_read() {
    let table = |range: &str| {
        stream(
            "",
            &format!(
                "begincmap 1 begincodespacerange <00> <FF> endcodespacerange 1 beginbfrange {range} endbfrange endcmap"
            ),
        )
    };
    let font = |name: &str, table: usize| {
        format!(
            "<< /Type /Font /Subtype /TrueType /BaseFont /{name} /FirstChar 0 /LastChar 255 /Widths [{}] /ToUnicode {table} 0 R >>",
            "500 ".repeat(256)
        )
    };
    let content = "BT /F1 12 Tf 72 700 Td (5 ) Tj /F2 12 Tf (\\263) Tj /F1 12 Tf ( 4, ) Tj /F3 12 Tf (e\\034cient o\\033er \\020) Tj ET";
    let bytes = pdf_of(
        &[
            "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
            "<< /Type /Pages /Count 1 /Kids [3 0 R] >>".to_owned(),
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R /F2 6 0 R /F3 7 0 R >> >> >>".to_owned(),
            stream("", content),
            "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
            font("ABCDEF+SymbolMT", 8),
            font("ABCDEF+CMR10", 9),
            table("<20> <FF> <F020>"),
            table("<10> <7E> <0010>"),
        ],
        "",
    );
    assert_eq!(text(&bytes), "5 ≥ 4, eficient offer");
}

#[test]
fn a_menu_shows_its_choice_and_a_portfolio_its_files() {
    let field = "<< /Type /Annot /Subtype /Widget /FT /Ch /Opt [[(ebb) (Falling water)] [(flow) (Rising water)]] /V (flow) /Rect [130 696 300 708] >>";
    let content = "BT /F1 12 Tf 72 700 Td (Tide:) Tj ET";
    let read = text(&page(content, &format!("/Annots [{field}]"), &[PICTURE]));
    assert_eq!(read.replace(" | ", " "), "Tide: Rising water");
    let whole = page(
        "BT /F1 12 Tf 72 700 Td (Open it elsewhere) Tj ET",
        "",
        &[PICTURE, &stream("/Type /EmbeddedFile", "High water at noon.")],
    );
    let named = "/Pages 2 0 R /Names << /EmbeddedFiles << /Names [(a.txt) << /Type /Filespec /F (a.txt) /EF << /F 7 0 R >> >>] >> >>";
    let attached = |more: &str| {
        let file = String::from_utf8(whole.clone()).unwrap();
        text(file.replacen("/Pages 2 0 R", &format!("{named} {more}"), 1).as_bytes())
    };
    assert_eq!(attached(""), "Open it elsewhere\n\n[Attached, not read: a.txt]");
    assert_eq!(
        attached("/Collection << /View /D >>"),
        "Open it elsewhere\n\n## Attachment: a.txt\n\nHigh water at noon."
    );
    // The cover may be blank.
    let blank = String::from_utf8(whole.clone())
        .unwrap()
        .replace("Open it elsewhere", " ".repeat(17).as_str());
    let blank = blank.replacen("/Pages 2 0 R", &format!("{named} /Collection << /View /D >>"), 1);
    assert_eq!(text(blank.as_bytes()), "## Attachment: a.txt\n\nHigh water at noon.");
}

#[test]
fn a_form_that_is_made_when_it_is_opened_is_refused_by_name() {
    let whole = String::from_utf8(pdf(&["Please wait..."])).unwrap();
    let dynamic = "/Pages 2 0 R /NeedsRendering true /AcroForm << /XFA [] >> >>";
    let refused = read(whole.replacen("/Pages 2 0 R >>", dynamic, 1).as_bytes()).unwrap_err();
    assert!(refused.to_string().contains("dynamic XFA"), "{refused}");
}

#[test]
fn a_wrong_table_of_contents_is_made_anew() {
    let whole = pdf(&["The tide", "turns."]);
    let wrong = String::from_utf8(whole.clone()).unwrap().replace("\nxref\n", "\n% moved\nxref\n");
    let shifted = wrong.replace(" 00000 n", " 00007 n").replace("000000", "000009");
    let cut = &whole[..whole.windows(4).rposition(|word| word == b"xref").unwrap() - 10];
    for bytes in [wrong.as_bytes(), shifted.as_bytes(), cut] {
        let read = read(bytes).unwrap();
        assert_eq!((read.text.as_str(), read.pages), ("The tide\n\nturns.", Some(2)));
        assert_eq!(read.page_starts, [0, "The tide".len()]);
    }
}

#[test]
fn pages_that_cannot_be_read_are_named() {
    let kids = "<< /Type /Pages /Count 4 /Kids [3 0 R 9 0 R 4 0 R 99 0 R 10 0 R] >>";
    let page = |content: usize| {
        format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {content} 0 R /Resources << /Font << /F1 7 0 R >> /XObject << /I 8 0 R >> >> >>"
        )
    };
    let bytes = pdf_of(
        &[
            "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
            kids.to_owned(),
            page(5),
            page(6),
            stream("", "BT /F1 12 Tf 72 720 Td (The first.) Tj ET"),
            stream("", "200 0 0 200 72 72 cm /I Do"),
            "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_owned(),
            PICTURE.to_owned(),
            // An empty page lacks nothing.
            page(11),
            page(12),
            stream("", "0 0 m 9 9 l S"),
            stream("/Filter /FlateDecode", "this is nothing that was packed"),
        ],
        "",
    );
    let read = read(&bytes).unwrap();
    assert_eq!(read.text, "The first.");
    assert_eq!((read.pages, read.left_out.pages()), (Some(5), vec![3, 4, 5]));
}

#[test]
fn content_with_more_faults_than_are_skipped_is_named() {
    let line = |text: &str| format!("BT /F1 12 Tf 72 700 Td ({text}) Tj ET ");
    let content = [line("before"), "] ".repeat(200), line("behind")].concat();
    let read = read(&page(&content, "", &[])).unwrap();
    assert_eq!(read.text, "before");
    assert_eq!(read.left_out.count(left_out::Kind::UnreadPages), 1);
}

#[test]
fn forms_that_are_cut_off_are_named() {
    let line = |text: &str| format!("BT /F1 12 Tf 72 700 Td ({text}) Tj ET ");
    let font = "/Resources << /Font << /F1 5 0 R >>";
    let form = |resources: &str, content: &str| {
        stream(
            &format!("/Type /XObject /Subtype /Form /BBox [0 0 612 792] {font} {resources} >>"),
            content,
        )
    };
    let (whole, cut) =
        (form("", &line("whole")), form("", &(line("start") + "1 f ] " + &line("end"))));
    let outer = form("/XObject << /I 7 0 R >>", "/I Do");
    for (content, forms, unread) in [
        ("/I Do", vec![&*whole], 0),
        ("/I Do", vec![&*cut], 1),
        // Nothing follows what cannot be read.
        ("/I Do", vec![&*form("", &(line("start") + "]"))], 0),
        ("/I Do", vec![&*outer, &*cut], 1),
        // It is not drawn.
        ("q Q", vec![&*cut], 0),
    ] {
        let read = read(&page(&(line("page") + content), "", &forms)).unwrap();
        assert_eq!(read.left_out.count(left_out::Kind::UnreadPages), unread, "{}", read.text);
    }
}

#[test]
fn pictures_alone_are_no_text() {
    let bytes = page("200 0 0 200 72 72 cm /I Do", "", &[PICTURE]);
    assert_eq!(read(&bytes).unwrap_err(), Unreadable::NoTextLayer { pages: 1 });
    let note = "<< /Type /Annot /Subtype /Text /Rect [0 0 9 9] /Contents (seen) >>";
    let noted = page("200 0 0 200 72 72 cm /I Do", "/Annots [7 0 R]", &[PICTURE, note]);
    let named = read(&noted).unwrap_err();
    assert_eq!(named, Unreadable::NoTextLayer { pages: 1 }, "a comment is no text of a scan");
}

/// A page with nothing but a picture, between two pages of text.
#[test]
fn a_page_without_text_is_drawn_where_it_is_asked_for() {
    let on = |content: usize| {
        format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {content} 0 R /Resources << /Font << /F1 10 0 R >> /XObject << /I 11 0 R >> >> >>"
        )
    };
    let (scan, words) = ("612 0 0 396 0 0 cm /I Do", "BT /F1 12 Tf 72 720 Td (Words.) Tj ET");
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Count 4 /Kids [3 0 R 4 0 R 5 0 R 6 0 R] >>".to_owned(),
        on(7),
        on(8),
        on(7),
        on(9),
        stream("", words),
        stream("", scan),
        stream("", scan),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_owned(),
        PICTURE.to_owned(),
    ];
    let bytes = pdf_of(&objects, "");
    let limits = Limits { page_pictures: 1, picture_edge: 400, ..Limits::default() };
    let read = extract(&bytes, "a.pdf", &limits).unwrap();
    if !DRAWS_PAGES {
        assert_eq!((read.pictures.len(), read.left_out.pages()), (0, vec![2, 4]));
        return;
    }
    assert_eq!(read.text, "Words.\n\n[Page 2: picture 1]\n\nWords.");
    assert_eq!(read.left_out.pages(), [4], "one page is drawn, and no more");
    let [page] = read.pictures.as_slice() else { panic!("{:?}", read.pictures.len()) };
    assert_eq!((page.width, page.height), (309, 399));
    let seen = image::load_from_memory(&page.bytes).unwrap().to_rgb8();
    let (paper, picture) = (seen.get_pixel(150, 100).0, seen.get_pixel(150, 300).0);
    assert_eq!((paper, picture), ([255; 3], [b'x'; 3]), "above is paper, below the picture");
}

/// Glyphs that no table explains are counted as unknown.
#[test]
fn letters_without_a_meaning_are_missed() {
    let font = "<< /Type /Font /Subtype /Type0 /BaseFont /X /Encoding /Identity-H /DescendantFonts [<< /Type /Font /Subtype /CIDFontType2 /BaseFont /X /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> >>] >>";
    let content = format!(
        "BT /F1 12 Tf 72 720 Td (Readable.) Tj /F2 12 Tf 0 -20 Td <{}> Tj ET",
        "0024".repeat(20)
    );
    let bytes = String::from_utf8(page(&content, "", &[PICTURE, font])).unwrap();
    let bytes = bytes.replace("/F1 5 0 R >>", "/F1 5 0 R /F2 7 0 R >>");
    let read = read(bytes.as_bytes()).unwrap();
    assert_eq!((read.text.as_str(), read.left_out.pages()), ("Readable.", vec![1]));
}

#[test]
fn values_of_a_form_are_read_once() {
    let content = "BT /F1 12 Tf 72 700 Td (Port:) Tj ET";
    let looks = stream(
        "/Type /XObject /Subtype /Form /BBox [0 0 200 20] /Resources << /Font << /F1 5 0 R >> >>",
        "BT /F1 12 Tf 2 5 Td (Brest) Tj ET",
    );
    let bytes = page(
        content,
        "/Annots [7 0 R 8 0 R 9 0 R]",
        &[
            PICTURE,
            "<< /Type /Annot /Subtype /Widget /FT /Tx /T (a) /V (Brest) /Rect [120 695 320 715] /AP << /N 10 0 R >> >>",
            "<< /Type /Annot /Subtype /Widget /FT /Tx /T (b) /V <FEFF00320020006D> /Rect [120 675 320 695] >>",
            "<< /Type /Annot /Subtype /Widget /FT /Tx /T (c) /V (unseen) /F 2 /Rect [120 655 320 675] >>",
            &looks,
        ],
    );
    let text = text(&bytes);
    assert_eq!(text.split_whitespace().collect::<Vec<_>>(), ["Port:", "Brest", "2", "m"], "{text}");
}

fn words(bytes: &[u8]) -> String {
    text(bytes).replace('|', " ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Makes a widget without an appearance.
fn widget(entries: &str, place: &str) -> String {
    format!("<< /Type /Annot /Subtype /Widget {entries} /Rect [{place}] >>")
}

#[test]
fn values_without_an_appearance_stand_in_their_own_fields() {
    let line = |y: u32, text: &str| format!("BT /F1 12 Tf 72 {y} Td ({text}) Tj ET\n");
    let content = [
        line(698, "Harbor"),
        line(633, "Call"),
        line(600, "Berth: ____________________"),
        line(580, "Day: DD.MM.YYYY"),
        line(560, "Printed: Brest"),
    ];
    let fields = [
        widget("/FT /Tx /Ff 4096 /V (7 Quay Road\\rDover\\rKent)", "150 650 400 710"),
        widget("/FT /Tx /V (020 7946)", "150 630 400 645"),
        widget("/FT /Tx /V (12b)", "108 596 300 612"),
        widget("/FT /Tx /V (05.01.2026)", "100 576 300 592"),
        widget("/FT /Tx /V (Brest)", "118 556 300 572"),
    ];
    let bytes = page(&content.concat(), &format!("/Annots [{}]", fields.concat()), &[PICTURE]);
    let read = words(&bytes);
    assert!(read.starts_with("Harbor 7 Quay Road Dover Kent Call 020 7946 Berth: 12b"), "{read}");
    assert!(read.contains("05.01.2026") && read.contains("DD.MM.YYYY"), "{read}");
    assert!(read.ends_with("Printed: Brest"), "as printed, once: {read}");
}

#[test]
fn values_are_inherited_and_of_any_type() {
    let fields = [
        widget("/Parent 7 0 R", "150 695 400 712"),
        widget("/FT /Tx /V 9 0 R", "150 665 400 682"),
        widget("/FT /Ch /Opt [(neap) (spring)] /V /spring", "150 635 400 652"),
    ];
    let bytes = page(
        "BT /F1 12 Tf 72 700 Td (Tide:) Tj ET",
        &format!("/Annots [{}]", fields.concat()),
        &[
            PICTURE,
            "<< /Parent 8 0 R >>",
            "<< /FT /Tx /V (of the grandparent) >>",
            &stream("", "of a stream"),
        ],
    );
    assert_eq!(words(&bytes), "Tide: of the grandparent of a stream spring");
}

#[test]
fn boxes_are_read_with_their_states() {
    let labels = ["agreed", "refused", "monthly", "yearly", "sent", "marked"];
    let content: String = (0..)
        .zip(labels)
        .map(|(at, label)| format!("BT /F1 12 Tf 90 {} Td ({label}) Tj ET\n", 697 - 20 * at))
        .collect();
    let look = |content: &str| {
        let font = "/Resources << /Font << /F1 5 0 R >> >>";
        stream(&format!("/Type /XObject /Subtype /Form /BBox [0 0 12 12] {font}"), content)
    };
    let looks = "/AP << /N << /Yes 7 0 R /Off 8 0 R >> >>";
    let place = |at: u32| format!("72 {} 84 {}", 695 - 20 * at, 707 - 20 * at);
    let fields = [
        widget(&format!("/FT /Btn /V /Yes /AS /Yes {looks}"), &place(0)),
        widget(&format!("/FT /Btn /V /Off /AS /Off {looks}"), &place(1)),
        widget("/Ff 32768 /Parent 9 0 R /AS /B", &place(2)),
        widget("/Ff 32768 /Parent 9 0 R /AS /Off", &place(3)),
        widget("/FT /Btn /Ff 65536", &place(4)),
        widget("/FT /Btn /V /Yes /AS /Yes /AP << /N << /Yes 10 0 R >> >>", &place(5)),
    ];
    let bytes = page(
        &content,
        &format!("/Annots [{}]", fields.concat()),
        &[
            PICTURE,
            &look("0 0 12 12 re S 2 2 m 10 10 l S 2 10 m 10 2 l S"),
            &look("0 0 12 12 re S"),
            "<< /FT /Btn /Ff 32768 /V /B >>",
            &look("BT /F1 10 Tf 2 2 Td (X) Tj ET"),
        ],
    );
    let expected = "[x] agreed\n[ ] refused\n[x] monthly\n[ ] yearly\nsent\nX marked";
    assert_eq!(text(&bytes), expected);
}

#[test]
fn struck_text_is_marked() {
    // Helvetica: "Dues " is 30.0 points wide, "EUR 80" 40.7.
    let line = "BT /F1 12 Tf 72 700 Td (Dues EUR 80 EUR 95) Tj ET\n";
    let read =
        |more: &str, entries: &str| text(&page(&format!("{line}{more}"), entries, &[PICTURE]));
    let struck = "Dues ~~EUR 80~~ EUR 95";
    assert_eq!(read("102 703 41 0.6 re f", ""), struck, "a thin area");
    assert_eq!(read("0.6 w 102 703.5 m 143 703.5 l S", ""), struck, "a line");
    assert_eq!(read("102 703 20 0.6 re f 122 703 21 0.6 re f", ""), struck, "in parts");
    let note = "/Annots [<< /Type /Annot /Subtype /StrikeOut /Rect [102 696 143 712] /QuadPoints [102 712 143 712 102 697 143 697] >>]";
    assert_eq!(read("", note), struck, "a note without an appearance");
    let plain = "Dues EUR 80 EUR 95";
    assert_eq!(read("102 698 41 0.6 re f", ""), plain, "an underline");
    assert_eq!(read("20 703 500 0.6 re f", ""), plain, "a line of a grid");
    assert_eq!(read("12 w 102 703 m 143 703 l S", ""), plain, "a highlight");
}

#[test]
fn a_scan_with_a_stamp_is_named_and_keeps_its_layer_of_text() {
    let scan = "q 612 0 0 792 0 0 cm /I Do Q BT /F1 10 Tf 72 770 Td (Case 7 of 2026, Document 3, Page 1 of 9) Tj ET";
    let stamped = read(&page(scan, "", &[PICTURE])).unwrap();
    let count = match DRAWS_PAGES {
        true => {
            stamped.left_out.count(left_out::Kind::PagesWithoutText) + stamped.pictures.len() as u64
        }
        false => stamped.left_out.count(left_out::Kind::PagesWithoutText),
    };
    assert_eq!(count, 1, "{:?}", stamped.left_out);
    assert!(stamped.text.contains("Case 7"), "{}", stamped.text);
    let layer = format!("{scan} BT 3 Tr /F1 10 Tf 72 700 Td (a short scan) Tj ET");
    let layered = read(&page(&layer, "", &[PICTURE])).unwrap();
    assert!(layered.text.ends_with("a short scan"), "{}", layered.text);
    assert!(layered.left_out.is_empty(), "{:?}", layered.left_out);
    // A page with a picture and more than a stamp.
    let full = format!(
        "q 612 0 0 792 0 0 cm /I Do Q {}",
        "BT /F1 10 Tf 72 700 Td (a line of its own text) Tj ET "
            .repeat(9)
            .split_inclusive("ET ")
            .enumerate()
            .map(|(at, line)| line.replace("700", &(700 - 20 * at).to_string()))
            .collect::<String>()
    );
    assert!(read(&page(&full, "", &[PICTURE])).unwrap().left_out.is_empty());
}

#[test]
fn files_of_notes_are_named() {
    let note = "<< /Type /Annot /Subtype /FileAttachment /Rect [9 9 20 20] /FS 7 0 R >>";
    let file = "<< /Type /Filespec /F (tides.csv) /EF << /F 8 0 R >> >>";
    let bytes = page(
        "BT /F1 12 Tf 72 700 Td (The report) Tj ET",
        &format!("/Annots [{note} {note}]"),
        &[PICTURE, file, &stream("/Type /EmbeddedFile", "a,b")],
    );
    assert_eq!(text(&bytes), "The report\n\n[Attached, not read: tides.csv]");
}

#[test]
fn words_on_a_line_of_underscores_stay_whole() {
    let content = "BT /F1 12 Tf 72 700 Td (Port: ________________  Day: ________) Tj ET \
        BT /F1 12 Tf 106 702 Td (Saint Malo) Tj ET BT /F1 12 Tf 255 702 Td (5 May) Tj ET";
    let read = words(&page(content, "", &[PICTURE]));
    assert!(read.starts_with("Port: Saint Malo") && read.contains("Day: 5 May"), "{read}");
}

#[test]
fn a_level_watermark_comes_behind_the_text() {
    let lines: String = (0..4)
        .map(|at| {
            format!("BT /F1 10 Tf 72 {} Td (Line {at} of this contract) Tj ET\n", 700 - 13 * at)
        })
        .collect();
    let content = format!("0.9 g BT /F1 70 Tf 80 661 Td (COPY) Tj ET 0 g {lines}");
    let expected: String = (0..4).map(|at| format!("Line {at} of this contract\n")).collect();
    assert_eq!(text(&page(&content, "", &[PICTURE])), format!("{expected}\nCOPY"));
}

#[test]
fn letters_outside_of_the_page_covered_or_in_the_color_of_the_page_are_hidden() {
    let line = |y: i32, text: &str| format!("BT /F1 12 Tf 72 {y} Td ({text}) Tj ET\n");
    let content = [
        line(600, "seen"),
        line(-20, "below"),
        line(-2, "edge"),
        format!("{} q 612 0 0 50 0 700 cm /I Do Q", line(720, "pictured")),
        format!(
            "1 g 1 G BT 1 Tr /F1 12 Tf 72 560 Td (outlined) Tj 0 Tr ET 0 g {}",
            line(540, "end")
        ),
        "BT 1 Tz /F1 12 Tf 72 520 Td (thin) Tj ET".to_owned(),
    ];
    let read = read(&page(&content.join("\n"), "", &[PICTURE])).unwrap();
    assert_eq!(read.text.split_whitespace().collect::<Vec<_>>(), ["seen", "end", "edge"]);
    let hidden = "below pictured outlined thin".replace(' ', "").len();
    assert_eq!(read.left_out.count(left_out::Kind::HiddenText), hidden as u64);
}

#[test]
fn layers_that_a_screen_does_not_show_are_hidden() {
    let layer = |name: &str| format!("/OC /{name} BDC BT /F1 12 Tf 72 650 Td ({name}) Tj ET EMC\n");
    let content = format!(
        "BT /F1 12 Tf 72 700 Td (seen) Tj ET {}{}{}",
        layer("Print"),
        layer("Both"),
        layer("Either").replace("650", "600")
    );
    let note = "<< /Type /Annot /Subtype /FreeText /Rect [72 500 300 520] /OC 7 0 R /Contents (noted) /AP << /N 12 0 R >> >>";
    let whole = page(
        &content,
        &format!("/Annots [{note}]"),
        &[
            PICTURE,
            "<< /Type /OCG /Name (off) >>",
            "<< /Type /OCG /Name (on) >>",
            "<< /Type /OCG /Name (print) /Usage << /View << /ViewState /OFF >> >> >>",
            "<< /Type /OCMD /VE [/And 7 0 R [/Not [/Not 8 0 R]]] >>",
            "<< /Type /OCMD /VE [/Or 7 0 R 8 0 R] >>",
            &stream(
                "/Type /XObject /Subtype /Form /BBox [0 0 228 20] /Resources << /Font << /F1 5 0 R >> >>",
                "BT /F1 12 Tf 2 4 Td (noted) Tj ET",
            ),
        ],
    );
    let config = "/Pages 2 0 R /OCProperties << /OCGs [7 0 R 8 0 R 9 0 R] /D << /OFF [7 0 R] /AS [<< /Event /View /Category [/View] /OCGs [9 0 R] >>] >> >>";
    let names = "/Properties << /Print 9 0 R /Both 10 0 R /Either 11 0 R >> /Font";
    let file = String::from_utf8(whole).unwrap().replacen("/Pages 2 0 R", config, 1);
    let read = read(file.replacen("/Font", names, 1).as_bytes()).unwrap();
    assert_eq!(words_of(&read.text), ["seen", "Either"]);
    assert_eq!(read.left_out.count(left_out::Kind::HiddenText), "PrintBothnoted".len() as u64);
}

fn words_of(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

#[test]
fn fake_bold_is_read_once_and_double_letters_twice() {
    let content =
        "BT /F1 12 Tf 72 720 Td (All tides) Tj ET BT /F1 12 Tf 72.4 720 Td (All tides) Tj ET";
    assert_eq!(text(&page(content, "", &[PICTURE])), "All tides");
}

#[test]
fn what_a_piece_stands_for_is_what_it_says() {
    let content = "BT /F1 12 Tf 72 720 Td (The ) Tj /Span << /ActualText (tide) >> BDC (xyz) Tj EMC ( turns.) Tj ET";
    assert_eq!(text(&page(content, "", &[PICTURE])), "The tide turns.");
}

#[test]
fn letters_that_are_set_one_by_one_make_words() {
    // As browsers print: each letter at its own position, kerned.
    let mut content = String::from("BT /F1 10 Tf ");
    for (x, letter) in
        [(72.0, 'T'), (77.2, 'i'), (79.4, 'd'), (85.0, 'e'), (93.3, 'A'), (99.0, 'V')]
    {
        content.push_str(&format!("1 0 0 1 {x} 700 Tm ({letter}) Tj "));
    }
    content.push_str("ET");
    assert_eq!(text(&page(&content, "", &[PICTURE])), "Tide AV");
}

#[test]
fn a_turned_page_has_lines() {
    let content = "BT /F1 12 Tf 0 1 -1 0 100 72 Tm (The first line) Tj 1 0 0 1 0 0 Tm 0 1 -1 0 120 72 Tm (The second) Tj ET";
    let expected = "The first line\nThe second";
    assert_eq!(text(&page(content, "", &[PICTURE])), expected);
    assert_eq!(text(&page(content, "/Rotate 90", &[PICTURE])), expected);
}

#[test]
fn known_encodings_need_no_table() {
    // The second font names a table instead of including one: its codes are Unicode, as some
    // programs write.
    for (encoding, system) in
        [("/UniJIS-UCS2-H", "Japan1"), ("/Identity-H /ToUnicode /Identity-H", "Identity")]
    {
        let font = format!(
            "<< /Type /Font /Subtype /Type0 /BaseFont /Ryumin-Light /Encoding {encoding} /DescendantFonts [<< /Type /Font /Subtype /CIDFontType0 /BaseFont /Ryumin-Light /CIDSystemInfo << /Registry (Adobe) /Ordering ({system}) /Supplement 2 >> >>] >>"
        );
        let (fonts, form) =
            ("/Resources << /Font << /F1 5 0 R >> >>", "/Resources << /XObject << /X 6 0 R >> >>");
        let words = "BT /F1 12 Tf 72 720 Td <6F6E6E80> Tj ET";
        // The page has the font, inherits it, or draws a form that has it.
        for (above, own, content) in [("", fonts, words), (fonts, "", words), ("", form, "/X Do")] {
            let bytes = pdf_of(
                &[
                    "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
                    format!("<< /Type /Pages /Count 1 /Kids [3 0 R] {above} >>"),
                    format!(
                        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R {own} >>"
                    ),
                    stream("", content),
                    font.clone(),
                    stream(
                        &format!("/Type /XObject /Subtype /Form /BBox [0 0 612 792] {fonts}"),
                        words,
                    ),
                ],
                "",
            );
            assert_eq!(text(&bytes), "潮満", "{encoding} {above} {own}");
        }
    }
}

/// Tables of meanings as programs write them: ranges with one start, with a list, with characters
/// of two UTF-16 units; and tables of glyphs.
#[test]
fn tables_of_meanings_are_read_in_all_their_forms() {
    let ranges = "1 begincodespacerange <0000> <FFFF> endcodespacerange";
    for (table, expected) in [
        ("1 beginbfrange <0001> <0003> <6F6E> endbfrange", "潮潯潰"),
        ("1 beginbfrange <0001> <0003> [<6F6E> <6E80> <D83CDF0A>] endbfrange", "潮満🌊"),
        ("3 beginbfchar <0001> <6F6E> <0002> <00660069> <0003> <41> endbfchar", "潮fiA"),
        ("1 begincidrange <0001> <0003> 65 endcidrange", "ABC"),
        (
            "2 begincidchar <0001> 28526 <0002> 28288 endcidchar 1 begincidrange <0003> <0003> 66 endcidrange",
            "潮満B",
        ),
    ] {
        let table =
            format!("/CIDInit /ProcSet findresource begin begincmap {ranges} {table} endcmap end");
        let font = "<< /Type /Font /Subtype /Type0 /BaseFont /F /Encoding /Identity-H /ToUnicode 6 0 R /DescendantFonts [<< /Type /Font /Subtype /CIDFontType2 /BaseFont /F /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> >>] >>";
        let bytes = pdf_of(
            &[
                "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
                "<< /Type /Pages /Count 1 /Kids [3 0 R] >>".to_owned(),
                "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>".to_owned(),
                stream("", "BT /F1 12 Tf 72 720 Td <000100020003> Tj ET"),
                font.to_owned(),
                stream("", &table),
            ],
            "",
        );
        assert_eq!(text(&bytes), expected, "{table}");
    }
}

/// Draws texts in 10 points at their places, and lines.
fn drawn(texts: &[(u32, u32, &str)], lines: &str) -> String {
    let texts: String = texts
        .iter()
        .map(|(x, y, text)| format!("BT /F1 10 Tf {x} {y} Td ({text}) Tj ET "))
        .collect();
    text(&page(&format!("{lines} {texts}"), "", &[PICTURE]))
}

/// Drawn cells: empty ones, some with several lines, one across two columns, and a title.
#[test]
fn tables_that_are_drawn_keep_their_cells() {
    let texts = [
        (65, 726, "Tides of the year"),
        (65, 706, "Port"),
        (165, 706, "Water"),
        (165, 686, "high"),
        (265, 686, "low"),
        (65, 666, "Brest and what"),
        (65, 654, "lies about it"),
        (265, 666, "2"),
        (65, 636, "Dover"),
        (165, 636, "6"),
        (72, 600, "A text below it."),
    ];
    let expected = "Tides of the year\n\nPort | Water |\n | high | low\nBrest and what lies about it |  | 2\nDover | 6 |\n\nA text below it.";
    // Strokes, and areas so thin that they are lines, as Office programs write them.
    let (mut strokes, mut areas) = (String::new(), String::new());
    for (from, to) in [
        ((60, 740), (360, 740)),
        ((60, 720), (360, 720)),
        ((160, 700), (360, 700)),
        ((60, 680), (360, 680)),
        ((60, 650), (360, 650)),
        ((60, 630), (360, 630)),
        ((60, 630), (60, 740)),
        ((360, 630), (360, 740)),
        ((160, 630), (160, 720)),
        ((260, 630), (260, 700)),
    ] {
        strokes += &format!("{} {} m {} {} l S ", from.0, from.1, to.0, to.1);
        let (width, height) = ((to.0 - from.0).max(1), (to.1 - from.1).max(1));
        areas += &format!("{} {} {width} {height} re f ", from.0, from.1);
    }
    for lines in [strokes, areas] {
        let text = drawn(&texts, &lines.replace("650", "648"));
        assert_eq!(text, expected, "{lines}");
    }
}

/// A table may have no lines below its head, or only lines between its rows.
#[test]
fn rows_are_told_by_what_lines_there_are() {
    let rows =
        [(706, "Port", "Metres"), (686, "Brest", "7.1"), (674, "Dover", "6.9"), (662, "Cork", "")];
    let mut texts: Vec<(u32, u32, &str)> = Vec::new();
    for (y, port, metres) in rows {
        texts.extend([(65, y, port), (165, y, metres)]);
    }
    texts.push((165, 650, "4.2"));
    let lines = "60 640 200 80 re S 60 700 m 260 700 l S 160 640 m 160 720 l S";
    let expected = "Port | Metres\nBrest | 7.1\nDover | 6.9\nCork |\n | 4.2";
    assert_eq!(drawn(&texts, lines), expected);

    let texts = [
        (60, 700, "A first cell that is"),
        (180, 700, "A remark on what"),
        (60, 688, "Longer"),
        (180, 688, "Is there"),
        (60, 676, "A second cell that"),
        (180, 676, "Nothing at all"),
        (60, 664, "Is longer"),
        (60, 652, "A third"),
        (180, 652, "Something"),
    ];
    let lines = "60 685 m 300 685 l S 60 660 m 300 660 l S";
    let expected = "A first cell that is Longer | A remark on what Is there\nA second cell that Is longer | Nothing at all\nA third | Something";
    assert_eq!(drawn(&texts, lines), expected);
}

/// A frame around a page, boxes for the letters of a form, and a line below words.
#[test]
fn lines_alone_make_no_table() {
    let frame = "30 30 550 740 re S 30 720 m 580 720 l S 72 695 m 140 695 l S";
    let texts = [(72, 740, "A title"), (72, 700, "Words in a"), (72, 688, "frame.")];
    assert_eq!(drawn(&texts, frame), "A title\n\nWords in a\nframe.");
    let boxes: String = (0..6).map(|n| format!("{} 700 14 18 re S ", 60 + 14 * n)).collect();
    let letters =
        [(63, 705, "B"), (77, 705, "R"), (91, 705, "E"), (105, 705, "S"), (119, 705, "T")];
    assert!(!drawn(&letters, &boxes).contains('|'));
}

/// Comments: notes, texts of marks, and drawn text, which is already on the page. Hidden comments
/// and repetitions of the page's text are left out.
#[test]
fn comments_are_read_once() {
    let note = |kind: &str, entries: &str| {
        format!("<< /Type /Annot /Subtype /{kind} /Rect [72 690 140 710] {entries} >>")
    };
    let notes = [
        note("Text", "/T (Ada) /Contents (The price\\ris 900.)"),
        note("Highlight", "/Contents <FEFF00770068007901FE>"),
        note("Highlight", "/Contents (Words of the  contract)"),
        note("FreeText", "/Contents (contract)"),
        note("FreeText", "/Contents (not drawn)"),
        note("Text", "/F 2 /Contents (unseen)"),
        note("Popup", "/Contents (again)"),
        note("Text", "/Contents ( )"),
    ];
    let mut more = vec![PICTURE];
    more.extend(notes.iter().map(String::as_str));
    let content = "BT /F1 12 Tf 72 700 Td (Words of the contract.) Tj ET";
    // The first one is missing in the file.
    let annotations = "/Annots [99 0 R 7 0 R 8 0 R 9 0 R 10 0 R 11 0 R 12 0 R 13 0 R 14 0 R]";
    assert_eq!(
        text(&page(content, annotations, &more)),
        "Words of the contract.\n\n[Comment by Ada: The price is 900.]\n[Comment: why\u{1fe}]\n[Comment: not drawn]"
    );
}

#[test]
fn attached_files_are_named() {
    let file = |name: &str| format!("<< /Type /Filespec /F ({name}) /EF << >> >>");
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R /Names << /EmbeddedFiles 6 0 R >> >>".to_owned(),
        "<< /Type /Pages /Count 1 /Kids [3 0 R] >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>".to_owned(),
        stream("", "BT /F1 12 Tf 72 720 Td (See the annexes.) Tj ET"),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_owned(),
        // A node that contains itself.
        "<< /Kids [7 0 R 8 0 R 6 0 R] >>".to_owned(),
        format!("<< /Names [(a) {} (b) {}] >>", file("annex.txt"), file("plan.pdf")),
        format!("<< /Names [(c) {}] >>", file("c.csv")),
    ];
    assert_eq!(
        text(&pdf_of(&objects, "")),
        "See the annexes.\n\n[Attached, not read: annex.txt, plan.pdf, c.csv]"
    );
}
