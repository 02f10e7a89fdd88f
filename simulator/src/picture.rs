//! Pictures in a call: what they are, by their own first bytes, and what they count.

use base64::{Engine as _, engine::general_purpose::STANDARD};

/// Formats that the vendors accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Png,
    Jpeg,
    Webp,
}

/// Why a vendor would not take a picture.
#[derive(Debug, Clone)]
pub(crate) struct BadPicture(pub(crate) String);

/// A picture in base64, or in a data URL of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Picture {
    pub(crate) kind: Kind,
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// Of the file.
    pub(crate) bytes: usize,
}

impl Kind {
    pub(crate) const fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Webp => "image/webp",
        }
    }
}

impl Picture {
    /// Reads the picture's header; an error for what is none.
    pub(crate) fn read(data: &str) -> Result<Self, BadPicture> {
        let data = data.split_once(";base64,").map_or(data, |(_, data)| data);
        let bytes = STANDARD.decode(data).unwrap_or_default();
        let found = png(&bytes).or_else(|| jpeg(&bytes)).or_else(|| webp(&bytes));
        let (kind, width, height) =
            found.ok_or_else(|| BadPicture("Could not process image".to_owned()))?;
        Ok(Self { kind, width, height, bytes: bytes.len() })
    }

    /// Squares of this side that cover it.
    pub(crate) fn patches(self, side: u32) -> u64 {
        u64::from(self.width.div_ceil(side)) * u64::from(self.height.div_ceil(side))
    }
}

fn number(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |all, byte| all << 8 | u32::from(*byte))
}

fn backwards(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |all, byte| all << 8 | u32::from(*byte))
}

fn png(bytes: &[u8]) -> Option<(Kind, u32, u32)> {
    let size = bytes.starts_with(b"\x89PNG\r\n\x1a\n").then(|| bytes.get(16..24))??;
    Some((Kind::Png, number(&size[..4]), number(&size[4..])))
}

/// The size stands in the frame's own segment, behind others of any length.
fn jpeg(bytes: &[u8]) -> Option<(Kind, u32, u32)> {
    let mut rest = bytes.strip_prefix(b"\xff\xd8")?;
    loop {
        let segment = rest.get(..4).filter(|segment| segment[0] == 0xff)?;
        if matches!(segment[1], 0xc0..=0xcf) && !matches!(segment[1], 0xc4 | 0xc8 | 0xcc) {
            let size = rest.get(5..9)?;
            return Some((Kind::Jpeg, number(&size[2..]), number(&size[..2])));
        }
        rest = rest.get(2 + number(&segment[2..]) as usize..)?;
    }
}

fn webp(bytes: &[u8]) -> Option<(Kind, u32, u32)> {
    if !bytes.starts_with(b"RIFF") || bytes.get(8..12)? != b"WEBP" {
        return None;
    }
    let (width, height) = match bytes.get(12..16)? {
        b"VP8X" => (backwards(bytes.get(24..27)?) + 1, backwards(bytes.get(27..30)?) + 1),
        b"VP8L" => {
            let bits = backwards(bytes.get(21..25)?);
            ((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1)
        }
        _ => (backwards(bytes.get(26..28)?) & 0x3fff, backwards(bytes.get(28..30)?) & 0x3fff),
    };
    Some((Kind::Webp, width, height))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_stand_in_the_headers() {
        // A PNG of 3 × 2, a JPEG of 5 × 4 behind another segment.
        let png = "iVBORw0KGgoAAAANSUhEUgAAAAMAAAACCAIAAAA=";
        let jpeg = "data:image/jpeg;base64,/9j/4AAEAAD/wAALCAAEAAUDAREA";
        for (data, kind, width, height) in [(png, Kind::Png, 3, 2), (jpeg, Kind::Jpeg, 5, 4)] {
            let picture = Picture::read(data).unwrap();
            assert_eq!((picture.kind, picture.width, picture.height), (kind, width, height));
        }
        assert_eq!(Picture::read(png).unwrap().patches(2), 2);
        assert!(Picture::read("JVBERi0=").is_err(), "a PDF is no picture");
    }
}
