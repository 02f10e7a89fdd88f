//! Books as written by Excel from 1997 to 2003: records ([MS-XLS]) in a compound file ([MS-CFB]).

/// Makes a record.
pub(crate) fn record(kind: u16, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).unwrap();
    [&kind.to_le_bytes()[..], &length.to_le_bytes(), content].concat()
}

fn shorts(all: &[u16]) -> Vec<u8> {
    all.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// A sheet: whether it is hidden, and its records.
pub(crate) type Sheet<'s> = (bool, Vec<Vec<u8>>);

/// Makes a cell with a number and a style.
pub(crate) fn number(row: u16, column: u16, style: u16, value: f64) -> Vec<u8> {
    record(0x203, &[shorts(&[row, column, style]), value.to_le_bytes().to_vec()].concat())
}

/// Makes a cell with a text; its characters have two bytes each if one needs them, else one.
pub(crate) fn label(row: u16, column: u16, text: &str) -> Vec<u8> {
    let units: Vec<u16> = text.encode_utf16().collect();
    let is_wide = units.iter().any(|unit| *unit > 0xff);
    let letters: Vec<u8> = match is_wide {
        true => shorts(&units),
        false => units.iter().map(|unit| *unit as u8).collect(),
    };
    let head = shorts(&[row, column, 0, units.len() as u16]);
    record(0x204, &[&head[..], &[u8::from(is_wide)], &letters].concat())
}

/// Makes a hidden row.
pub(crate) fn hidden_row(row: u16) -> Vec<u8> {
    record(0x208, &shorts(&[row, 0, 9, 255, 0, 0, 0x0120, 0]))
}

/// Makes hidden columns.
pub(crate) fn hidden_columns(from: u16, to: u16) -> Vec<u8> {
    record(0x7d, &shorts(&[from, to, 2_000, 0, 1, 0]))
}

/// Makes a book of these sheets, with a style for each number format.
pub(crate) fn book(code_page: u16, formats: &[&str], sheets: &[Sheet<'_>]) -> Vec<u8> {
    let begin = |kind: u16| record(0x809, &[shorts(&[0x600, kind, 0, 0]), vec![0; 8]].concat());
    let end = record(0x0a, &[]);
    let mut head = [begin(5), record(0x42, &code_page.to_le_bytes())].concat();
    for (id, code) in (164_u16..).zip(formats) {
        let text = [&shorts(&[id, code.len() as u16])[..], &[0], code.as_bytes()].concat();
        head.extend(record(0x41e, &text));
    }
    let style = |format: u16| record(0xe0, &[shorts(&[0, format]), vec![0; 16]].concat());
    head.extend(style(0));
    head.extend((164_u16..).take(formats.len()).flat_map(style));
    let bodies: Vec<Vec<u8>> = sheets
        .iter()
        .map(|(_, records)| [begin(0x10), records.concat(), end.clone()].concat())
        .collect();
    let entries = |mut place: u32| {
        let mut all = Vec::new();
        for (number, ((is_hidden, _), body)) in sheets.iter().zip(&bodies).enumerate() {
            let name = format!("S{}", number + 1);
            let entry = [
                &place.to_le_bytes()[..],
                &[u8::from(*is_hidden), 0, name.len() as u8, 0],
                name.as_bytes(),
            ];
            all.extend(record(0x85, &entry.concat()));
            place += body.len() as u32;
        }
        all
    };
    let place = head.len() + entries(0).len() + end.len();
    let stream = [head, entries(place as u32), end.clone(), bodies.concat()].concat();
    compound(&stream)
}

/// Makes a compound file of one stream.
fn compound(stream: &[u8]) -> Vec<u8> {
    const SECTOR: usize = 512;
    const END: u32 = 0xffff_fffe;
    // A shorter stream would be stored in small sectors.
    let length = stream.len().max(4_096);
    let sectors = length.div_ceil(SECTOR);
    let mut head = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1".to_vec();
    head.extend([0; 16]);
    head.extend(shorts(&[0x3e, 3, 0xfffe, 9, 6]));
    head.extend([0; 10]);
    for number in [1, 1, 0, 4_096, END, 0, END, 0, 0] {
        head.extend(number.to_le_bytes());
    }
    head.resize(SECTOR, 0xff);
    // The table is sector 0, the directory sector 1, the stream follows.
    let mut table: Vec<u32> = vec![0xffff_fffd, END];
    table.extend((3..).take(sectors - 1));
    table.push(END);
    let mut table: Vec<u8> = table.iter().flat_map(|number| number.to_le_bytes()).collect();
    table.resize(SECTOR, 0xff);
    let entry = |name: &str, kind: u8, child: u32, start: u32, size: usize| {
        let mut entry: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let used = entry.len() as u16 + 2;
        entry.resize(64, 0);
        entry.extend(used.to_le_bytes());
        entry.extend([kind, 1]);
        for number in [u32::MAX, u32::MAX, child] {
            entry.extend(number.to_le_bytes());
        }
        entry.resize(116, 0);
        entry.extend(start.to_le_bytes());
        entry.extend((size as u64).to_le_bytes());
        entry
    };
    let mut directory =
        [entry("Root Entry", 5, 1, END, 0), entry("Workbook", 2, u32::MAX, 2, length)].concat();
    directory.resize(SECTOR, 0);
    let mut stream = stream.to_vec();
    stream.resize(sectors * SECTOR, 0);
    [head, table, directory, stream].concat()
}
