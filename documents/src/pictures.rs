//! Pictures: checked, turned upright, and scaled for a model.

use std::io::Cursor;

use base64::prelude::{BASE64_STANDARD, Engine};
use image::{
    DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageReader, codecs::jpeg::JpegEncoder,
    imageops::FilterType, metadata::Orientation,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::{format::Format, limits::Limits, unreadable::Unreadable};

/// Longest edge in pixels before scaling. Larger pictures are huge drawings or decompression bombs.
const MAX_EDGE: u32 = 30_000;

/// Most bytes of an unpacked picture.
const MAX_UNPACKED: u64 = 512 << 20;

/// JPEG quality at which losses are invisible.
const QUALITY: u8 = 85;

/// Most attempts to make a picture smaller until its bytes fit.
const MAX_TRIES: u32 = 8;

/// A picture in a format that every vendor takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Picture {
    /// `image/png`, `image/jpeg` or `image/webp`.
    pub media_type: String,
    /// In pixels.
    pub width: u32,
    /// In pixels.
    pub height: u32,
    /// The bytes of the file.
    #[serde(serialize_with = "as_base64", deserialize_with = "of_base64")]
    pub bytes: Vec<u8>,
}

/// Reads a picture file. Returns the picture to send, and the number of pictures in the file.
pub(crate) fn read_picture(
    bytes: &[u8],
    format: Format,
    limits: &Limits,
) -> Result<(Picture, usize), Unreadable> {
    let (kind, media_type) = match format {
        Format::Png => (ImageFormat::Png, "image/png"),
        Format::Jpeg => (ImageFormat::Jpeg, "image/jpeg"),
        Format::Webp => (ImageFormat::WebP, "image/webp"),
        _ => (ImageFormat::Tiff, "image/png"),
    };
    let fault = |error: ImageError| {
        // The header is read without bounds.
        let size = || ImageReader::with_format(Cursor::new(bytes), kind).into_dimensions().ok();
        match (&error, size()) {
            (ImageError::Limits(_), Some((width, height))) => {
                let (most, megabytes) = (MAX_EDGE, MAX_UNPACKED / 1_000_000);
                Unreadable::PictureTooLarge { format, width, height, most, megabytes }
            }
            _ => Unreadable::damaged(format, error),
        }
    };
    let mut reader = ImageReader::with_format(Cursor::new(bytes), kind);
    let mut bounds = image::Limits::default();
    bounds.max_image_width = Some(MAX_EDGE);
    bounds.max_image_height = Some(MAX_EDGE);
    bounds.max_alloc = Some(MAX_UNPACKED);
    reader.limits(bounds);
    let mut decoder = reader.into_decoder().map_err(fault)?;
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let mut picture = DynamicImage::from_decoder(decoder).map_err(fault)?;
    picture.apply_orientation(orientation);
    let fits = picture.width().max(picture.height()) <= limits.picture_edge
        && bytes.len() as u64 <= limits.picture_bytes;
    let picture = if fits && format != Format::Tiff && orientation == Orientation::NoTransforms {
        Picture {
            media_type: media_type.to_owned(),
            width: picture.width(),
            height: picture.height(),
            bytes: bytes.to_vec(),
        }
    } else {
        encode_within_bounds(&picture, format != Format::Jpeg, limits).map_err(fault)?
    };
    let count = if format == Format::Tiff { count_tiff_directories(bytes) } else { 1 };
    Ok((picture, count))
}

/// Encodes a picture within the bounds: as PNG if `lossless` and it fits, else as JPEG.
pub(crate) fn encode_within_bounds(
    picture: &DynamicImage,
    lossless: bool,
    limits: &Limits,
) -> Result<Picture, image::ImageError> {
    let mut edge = limits.picture_edge.min(picture.width().max(picture.height()));
    let mut tries = 0;
    loop {
        let is_large = picture.width().max(picture.height()) > edge;
        let scaled = is_large.then(|| picture.resize(edge, edge, FilterType::Triangle));
        let scaled = scaled.as_ref().unwrap_or(picture);
        let (width, height) = (scaled.width(), scaled.height());
        let made = |media_type: &str, bytes| Picture {
            media_type: media_type.to_owned(),
            width,
            height,
            bytes,
        };
        if lossless {
            let mut bytes = Cursor::new(Vec::new());
            match scaled.color().has_alpha() {
                true => DynamicImage::from(scaled.to_rgba8()),
                false if scaled.color().has_color() => DynamicImage::from(scaled.to_rgb8()),
                false => DynamicImage::from(scaled.to_luma8()),
            }
            .write_to(&mut bytes, ImageFormat::Png)?;
            let bytes = bytes.into_inner();
            if bytes.len() as u64 <= limits.picture_bytes {
                return Ok(made("image/png", bytes));
            }
        }
        let mut bytes = Vec::new();
        flatten_on_white(scaled)
            .write_with_encoder(JpegEncoder::new_with_quality(&mut bytes, QUALITY))?;
        tries += 1;
        if bytes.len() as u64 <= limits.picture_bytes || tries == MAX_TRIES {
            return Ok(made("image/jpeg", bytes));
        }
        edge = (edge * 3 / 4).max(1);
    }
}

/// Replaces transparency by a white background.
fn flatten_on_white(picture: &DynamicImage) -> DynamicImage {
    if !picture.color().has_alpha() {
        return picture.to_rgb8().into();
    }
    let rgba = picture.to_rgba8();
    let mut rgb = image::RgbImage::new(rgba.width(), rgba.height());
    for (from, to) in rgba.pixels().zip(rgb.pixels_mut()) {
        let alpha = u32::from(from.0[3]);
        for channel in 0..3 {
            let mixed = (u32::from(from.0[channel]) * alpha + 255 * (255 - alpha)) / 255;
            to.0[channel] = u8::try_from(mixed).unwrap_or(u8::MAX);
        }
    }
    rgb.into()
}

/// Counts the pictures in a TIFF, which are a linked list.
fn count_tiff_directories(bytes: &[u8]) -> usize {
    let little = bytes.starts_with(b"II");
    let number = |at: usize, length: usize| {
        let part = bytes.get(at..at.checked_add(length)?)?;
        let digits: Vec<u8> =
            if little { part.iter().rev().copied().collect() } else { part.to_vec() };
        Some(digits.into_iter().fold(0_usize, |all, byte| all << 8 | usize::from(byte)))
    };
    let next = |at: usize| {
        let entries = number(at, 2)?;
        number(at + 2 + entries * 12, 4)
    };
    // The bound also ends a circular list.
    std::iter::successors(number(4, 4), |at| next(*at)).take_while(|at| *at > 0).take(1_000).count()
}

fn as_base64<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&BASE64_STANDARD.encode(bytes))
}

fn of_base64<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(deserializer)?;
    BASE64_STANDARD.decode(text).map_err(D::Error::custom)
}
