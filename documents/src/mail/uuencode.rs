//! Uuencode, used before base64: four characters for three bytes; a line begins with its length.

/// Decodes the lines between `begin` and `end`. Returns `None` without a `begin`.
pub(super) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let mut lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
    lines.find(|line| line.starts_with(b"begin "))?;
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for line in lines.take_while(|line| *line != b"end") {
        let Some((length, signs)) = line.split_first() else { continue };
        let length = usize::from(value(*length));
        let before = bytes.len();
        for group in signs.chunks(4) {
            // Spaces at a line's end, which stand for zeros, may be lost.
            let at = |place: usize| value(group.get(place).copied().unwrap_or(b' '));
            bytes.extend([at(0) << 2 | at(1) >> 4, at(1) << 4 | at(2) >> 2, at(2) << 6 | at(3)]);
        }
        bytes.truncate(before + length);
    }
    Some(bytes)
}

/// Takes uuencoded files out of a text. Returns the rest of the text, and the files with their
/// names.
pub(super) fn take_out_files(text: &str) -> (String, Vec<(&str, Vec<u8>)>) {
    let (mut words, mut files, mut rest) = (String::new(), Vec::new(), text);
    while let Some((start, name)) = begin(rest) {
        let (before, file) = rest.split_at(start);
        let Some(end) = file.find("\nend") else { break };
        let (file, behind) = file.split_at(end + "\nend".len());
        let is_one = file.lines().skip(1).all(|line| line == "end" || is_line(line.as_bytes()));
        match decode(file.as_bytes()).filter(|bytes| is_one && !bytes.is_empty()) {
            Some(bytes) => {
                words.push_str(before);
                files.push((name, bytes));
            }
            None => words.push_str(rest.get(..start + file.len()).unwrap_or_default()),
        }
        rest = behind;
    }
    words.push_str(rest);
    (words.trim().to_owned(), files)
}

/// Finds the start of a file and its name: `begin 644 tide.txt`.
fn begin(text: &str) -> Option<(usize, &str)> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let words = line.strip_prefix("begin ").and_then(|rest| rest.split_once(' '));
        let is_mode = |mode: &str| mode.len() == 3 && mode.bytes().all(|it| it.is_ascii_digit());
        if let Some((_, name)) = words.filter(|(mode, _)| is_mode(mode)) {
            return Some((at, name.trim()));
        }
        at += line.len();
    }
    None
}

/// Returns whether a line has about as many characters as its length states.
fn is_line(line: &[u8]) -> bool {
    let Some((length, signs)) = line.split_first() else { return true };
    let wanted = usize::from(value(*length)).div_ceil(3) * 4;
    (b' '..=b'`').contains(length) && signs.len() <= wanted + 2 && signs.len() + 4 >= wanted
}

/// Returns the six bits of a character.
fn value(sign: u8) -> u8 {
    sign.wrapping_sub(b' ') & 0x3f
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_unpacked() {
        let text = b"The tide:\r\n\r\nbegin 644 tide.txt\r\n#0V%T\r\n\"870\r\n`\r\nend\r\nafter";
        assert_eq!(decode(text).unwrap(), b"Catat");
        assert_eq!(decode(b"no mark"), None);
        assert_eq!(decode(b"begin 644 x"), Some(Vec::new()));
    }

    #[test]
    fn files_in_a_text_are_taken_out_of_it() {
        let text = "The tide:\n\nbegin 644 tide.txt\n#0V%T\n`\nend\nafter";
        let expected = ("The tide:\n\n\nafter".to_owned(), vec![("tide.txt", b"Cat".to_vec())]);
        assert_eq!(take_out_files(text), expected);
        let words = "We begin 644 x\nbegin 100 days\nof ebb and flow until they come to their\nend";
        assert_eq!(take_out_files(words), (words.to_owned(), Vec::new()));
    }
}
