//! Zstandard files: frames, one after the other.

use std::io::Read;

use ruzstd::decoding::StreamingDecoder;

/// A reader of the frames of a Zstandard file, one after the other.
pub(crate) struct Frames<'a> {
    rest: &'a [u8],
    frame: Option<Box<StreamingDecoder<&'a [u8], ruzstd::decoding::FrameDecoder>>>,
}

impl<'a> Frames<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, frame: None }
    }
}

impl Read for Frames<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        loop {
            let mut frame = match self.frame.take() {
                Some(frame) => frame,
                None if self.rest.is_empty() => return Ok(0),
                None => match skip_frame(self.rest) {
                    Some(rest) => {
                        self.rest = rest;
                        continue;
                    }
                    None => {
                        Box::new(StreamingDecoder::new(self.rest).map_err(std::io::Error::other)?)
                    }
                },
            };
            let read = frame.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                self.frame = Some(frame);
                return Ok(read);
            }
            self.rest = frame.into_inner();
        }
    }
}

/// Returns the bytes behind a skippable frame, if one begins here.
fn skip_frame(bytes: &[u8]) -> Option<&[u8]> {
    let (head, rest) = bytes.split_at_checked(8)?;
    let number =
        |part: &[u8]| part.iter().rev().fold(0_u32, |all, byte| all << 8 | u32::from(*byte));
    let is_skippable = (0x184D_2A50..=0x184D_2A5F).contains(&number(&head[..4]));
    is_skippable.then(|| rest.get(number(&head[4..]) as usize..).unwrap_or_default())
}
