//! What was sent before base 64: three bytes in four signs, a line's length in its first.

/// The bytes between `begin` and `end`; nothing where no `begin` stands.
pub(super) fn decoded(text: &[u8]) -> Option<Vec<u8>> {
    let mut lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
    lines.find(|line| line.starts_with(b"begin "))?;
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for line in lines.take_while(|line| *line != b"end") {
        let Some((length, signs)) = line.split_first() else { continue };
        let length = usize::from(value(*length));
        let before = bytes.len();
        for group in signs.chunks(4) {
            // Spaces at a line's end, which are zeros, may be lost.
            let at = |place: usize| value(group.get(place).copied().unwrap_or(b' '));
            bytes.extend([at(0) << 2 | at(1) >> 4, at(1) << 4 | at(2) >> 2, at(2) << 6 | at(3)]);
        }
        bytes.truncate(before + length);
    }
    Some(bytes)
}

/// A sign's six bits.
fn value(sign: u8) -> u8 {
    sign.wrapping_sub(b' ') & 0x3f
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_unpacked() {
        let text = b"The tide:\r\n\r\nbegin 644 tide.txt\r\n#0V%T\r\n\"870\r\n`\r\nend\r\nafter";
        assert_eq!(decoded(text).unwrap(), b"Catat");
        assert_eq!(decoded(b"no mark"), None);
        assert_eq!(decoded(b"begin 644 x"), Some(Vec::new()));
    }
}
