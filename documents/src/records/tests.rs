use super::*;

fn read(
    text: &str,
    format: Format,
    fields: RecordFields<'_>,
) -> Vec<Result<(String, String), String>> {
    let mut records =
        Records::of_bytes(text.as_bytes(), format, fields, Position::default()).unwrap();
    std::iter::from_fn(|| records.read_next().unwrap())
        .map(|record| record.map(|r| (r.id, r.text)).map_err(|error| error.to_string()))
        .collect()
}

#[test]
fn rows() {
    let text = "name;note\nAnna;\"two\nlines\"\nBert;x;y\nCara;last";
    let rows = read(text, Format::Csv, RecordFields::default());
    let record = |id: &str, text: &str| Ok((id.to_owned(), text.to_owned()));
    assert_eq!(rows[0], record("0000001", "name: Anna\nnote: two\nlines"));
    assert_eq!(rows[1], Err("line 4 is not a record: it has 3 fields, the header 2".to_owned()));
    let fields = RecordFields { id: Some("name"), text: Some("note") };
    assert_eq!(read(text, Format::Csv, fields)[2], record("Cara", "last"));
    let fields = RecordFields { id: Some("nom"), text: None };
    let error =
        Records::of_bytes(text.as_bytes(), Format::Csv, fields, Position::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the CSV is damaged: it has no column \"nom\"; its columns are name, note"
    );
    assert!(read("", Format::Csv, fields).is_empty(), "an empty file has no rows");
}

#[test]
fn names_in_quotes_may_hold_delimiters() {
    assert_eq!(detect_delimiter(b"\"Last, First, Title\";id\n"), b';');
    assert_eq!(detect_delimiter(b"id,\"a;b;c\"\n"), b',');
}

/// A row in an older encoding does not change the encoding of rows in UTF-8.
#[test]
fn rows_in_utf_8_are_read_behind_one_in_latin_1() {
    let file = Bytes::from_static(b"name\ncaf\xe9 cr\xe8me br\xfbl\xe9e\nGr\xc3\xb6\xc3\x9fe\n");
    let open = |from: u64| Ok(Cursor::new(file.slice(usize::try_from(from).unwrap()..)));
    let mut records =
        Records::open(open, Format::Csv, RecordFields::default(), Position::default()).unwrap();
    let mut next = || records.read_next().unwrap().unwrap().unwrap().text;
    assert_eq!(next(), "name: café crème brûlée");
    assert_eq!(next(), "name: Größe");
}

/// A `sep=` line is no header, and line numbers count it.
#[test]
fn a_first_line_may_say_the_delimiter() {
    for (line, rest) in [
        ("sep=;\r\n", "a;b,c\r\n1;2\r\n3\r\n"),
        ("SEP=|\n", "a|b,c\n1|2\n3\n"),
        ("\u{feff}\"sep=\t\"\n", "a\tb,c\n1\t2\n3\n"),
    ] {
        let text = format!("{line}{rest}");
        let rows = read(&text, Format::Csv, RecordFields { id: Some("a"), text: None });
        assert_eq!(rows[0], Ok(("1".to_owned(), "a: 1\nb,c: 2".to_owned())), "{text}");
        assert!(rows[1].as_ref().unwrap_err().starts_with("line 4 is not a record"), "{rows:?}");
        let (fields, bytes) = (RecordFields::default(), text.as_bytes());
        let at = |at| Records::of_bytes(bytes, Format::Csv, fields, at).unwrap();
        let mut first = at(Position::default());
        first.read_next().unwrap().unwrap().unwrap();
        let mut second = at(first.position());
        assert_eq!(second.read_next().unwrap(), first.read_next().unwrap());
    }
    for other in ["sep=\n1\n", "sep=;;\n1\n", "sep;x\n1;2\n"] {
        let rows = read(other, Format::Csv, RecordFields::default());
        assert_eq!(rows.len(), 1, "{other}: {rows:?}");
    }
}

#[test]
fn the_content_decides_what_a_file_is() {
    let fields = RecordFields::default();
    let told = |bytes: &[u8], format| {
        Records::of_bytes(bytes, format, fields, Position::default()).unwrap_err().to_string()
    };
    let pdf = b"%PDF-1.4\n1 0 obj\n<< >>\nstream\n\x01\x02";
    assert!(told(pdf, Format::Csv).starts_with("the content is PDF, not records"));
    // A header may begin with the mark of another format.
    for header in ["PAR1,PAR2", "RIFF,x", "GIF8,x", "ID3,x"] {
        let rows = read(&format!("{header}\n1,2\n"), Format::Csv, fields);
        assert!(rows.len() == 1 && rows[0].is_ok(), "{header}: {rows:?}");
    }
    let open =
        |from: u64| Ok(&b"PK\x03\x04\x14\0\x06\0xl/workbook.xml"[usize::try_from(from).unwrap()..]);
    let sheets = Records::open(open, Format::Jsonl, fields, Position::default()).unwrap_err();
    assert!(sheets.to_string().contains("the content is XLSX, not records"), "{sheets}");
    let rows = read("a,b\n1,%PDF-1.4\n", Format::Csv, fields);
    assert!(rows.len() == 1 && rows[0].is_ok(), "{rows:?}");
}

/// Otherwise the following rows would silently become part of one field.
#[test]
fn a_quotation_mark_that_is_never_closed_is_told() {
    let told = |text: &str| {
        let rows = read(text, Format::Csv, RecordFields::default());
        rows.last().unwrap().as_ref().unwrap_err().clone()
    };
    for open in ["2,\"open\n3,c\n", "\"2,b", "2,\"", "2,\"a \"\" b\n"] {
        let error = told(&format!("id,text\n1,a\n{open}"));
        assert!(error.starts_with("line 3 is not a record: a quotation mark"), "{open}: {error}");
    }
    for closed in ["2,\"b\n\n\"", "2,5\" wide", "2,\"\"\n", "2,b\n\n", "2,\"a \"\" b\""] {
        let rows = read(&format!("id,text\n1,a\n{closed}"), Format::Csv, RecordFields::default());
        assert!(rows.len() == 2 && rows.iter().all(Result::is_ok), "{closed}: {rows:?}");
    }
    let fields = RecordFields::default();
    let header = Records::of_bytes(b"id,\"text\n1,a\n", Format::Csv, fields, Position::default());
    assert!(header.unwrap_err().to_string().contains("line 1 is not a record: a quotation mark"));
}

#[test]
fn lines() {
    let text = "{\"id\":7,\"body\":\"Ebb\"}\n\nnonsense\n{\"body\":\"Flow\",\"n\":[1]}\n\"bare\"";
    let lines = read(text, Format::Jsonl, RecordFields { id: Some("id"), text: Some("body") });
    assert_eq!(lines[0], Ok(("7".to_owned(), "Ebb".to_owned())));
    assert!(lines[1].as_ref().unwrap_err().starts_with("line 3 is not a record: no JSON: "));
    assert!(!lines[1].as_ref().unwrap_err().contains("line 1"), "{:?}", lines[1]);
    assert_eq!(lines[2], Ok(("0000003".to_owned(), "Flow".to_owned())));
    assert!(lines[3].as_ref().unwrap_err().contains("no field \"body\""));
    let whole = read(text, Format::Jsonl, RecordFields::default());
    assert_eq!(
        (&whole[2].as_ref().unwrap().1, &whole[3].as_ref().unwrap().1),
        (&"body: Flow\nn: [1]".to_owned(), &"bare".to_owned())
    );
}

/// A file is reopened behind each record; no record is missing or repeated.
#[test]
fn reading_goes_on_anywhere() {
    let csv = "\u{feff}name;note\nAnna;\"two\nlines\"\nBert;x;y\n\nCara;größer\nDora;fünf\n";
    let json = "{\"a\":1}\n\n{\"a\":\"ü\"}\nno\n{\"a\":3}";
    let latin: Vec<u8> = csv.chars().skip(1).map(|c| c as u8).collect();
    let cases = [
        (csv.as_bytes(), Format::Csv, 4),
        (csv.trim_end().as_bytes(), Format::Csv, 4),
        (&latin, Format::Csv, 4),
        (json.as_bytes(), Format::Jsonl, 4),
    ];
    for (bytes, format, count) in cases {
        let open = |from: u64| Ok(&bytes[usize::try_from(from).unwrap().min(bytes.len())..]);
        let fields = RecordFields::default();
        let at = |at: Position| Records::open(open, format, fields, at).unwrap();
        let mut whole = at(Position::default());
        let all: Vec<_> = std::iter::from_fn(|| whole.read_next().unwrap()).collect();
        assert_eq!(all.len(), count);
        let mut position = Position::default();
        for record in &all {
            let mut records = at(position);
            assert_eq!(records.read_next().unwrap().as_ref(), Some(record));
            position = records.position();
            let stored = serde_json::to_string(&position).unwrap();
            position = serde_json::from_str(&stored).unwrap();
        }
        assert_eq!(at(position).read_next().unwrap(), None);
        if format == Format::Csv {
            assert_eq!(all[2].as_ref().unwrap().text, "name: Cara\nnote: größer");
            assert_eq!(
                all[1].as_ref().unwrap_err().to_string(),
                "line 4 is not a record: it has 3 fields, the header 2"
            );
        }
    }
}

/// Of an endless record, only as many bytes are read as a record may have.
#[test]
fn a_record_without_an_end_costs_no_more_than_its_bound() {
    for (head, format) in [("a,b\n\"open", Format::Csv), ("\"open", Format::Jsonl)] {
        let open = |from: u64| {
            let head = Cursor::new(head.as_bytes().to_vec()).take(u64::MAX);
            assert_eq!(from, 0);
            Ok(head.chain(io::repeat(b'x').take(1 << 30)))
        };
        let mut records =
            Records::open(open, format, RecordFields::default(), Position::default()).unwrap();
        let error = records.read_next().unwrap_err();
        assert!(error.to_string().contains("more than 16 MiB"), "{error}");
    }
    let wide: Vec<u8> = "a,b\n1,2\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let open = |from: u64| Ok(&wide[usize::try_from(from).unwrap()..]);
    let fields = RecordFields::default();
    let refused = Records::open(open, Format::Csv, fields, Position::default()).unwrap_err();
    assert!(refused.to_string().contains("save it in UTF-8"), "{refused}");
    let mut whole = Records::of_bytes(&wide, Format::Csv, fields, Position::default()).unwrap();
    assert_eq!(whole.read_next().unwrap().unwrap().unwrap().text, "a: 1\nb: 2");
}

/// In memory a value takes thirty times its two bytes, and an object ninety times its seven. A column
/// repeats its name in each row.
#[test]
fn records_of_too_many_values_are_refused_before_they_are_made() {
    let all = RecordFields::default();
    let objects = "{\"\":0},".repeat(100_001);
    for values in ["0,".repeat(1_100_000), objects] {
        let lines = format!("[{values}0]\n{{\"a\": 1}}");
        let rows = read(&lines, Format::Jsonl, all);
        let refused = rows[0].as_ref().unwrap_err();
        assert!(refused.contains("line 1 is not a record: it has more than 1000000"), "{refused}");
        assert!(rows[1].is_ok());
    }
    // A text that looks like values is one value.
    let code = format!("{{\"a\": \"{}\"}}", "f(){\\\"a,b\\\"},".repeat(1_000_000));
    assert!(read(&code, Format::Jsonl, all)[0].is_ok());
    let columns = "a,".repeat(20_001);
    let refused = Records::of_bytes(columns.as_bytes(), Format::Csv, all, Position::default());
    assert!(refused.unwrap_err().to_string().contains("20002 columns; at most 20000"));
    let name = "a".repeat(700_000);
    let names = format!("{name},{name}\n1,2");
    let refused = Records::of_bytes(names.as_bytes(), Format::Csv, all, Position::default());
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("names have 1400000 bytes; at most 1048576"), "{refused}");
    let row = format!("a,b\n{}\n1,2", ",".repeat(3_000_000));
    let rows = read(&row, Format::Csv, all);
    let refused = "line 2 is not a record: it has 3000001 fields, the header 2";
    assert_eq!(rows[0], Err(refused.to_owned()));
    assert!(rows[1].is_ok());
}
