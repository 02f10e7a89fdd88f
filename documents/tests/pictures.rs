//! Pictures as sent to models.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs, reason = "a test")]

mod common;

use std::{
    io::Cursor,
    panic::{AssertUnwindSafe, catch_unwind},
};

use common::{Dice, archive};
use image::{DynamicImage, ImageFormat, Rgba, RgbaImage};
use tidegate_documents::{Extracted, Format, Limits, Picture, Unreadable, extract};

/// Draws a gradient with a transparent corner.
fn drawn(width: u32, height: u32) -> DynamicImage {
    RgbaImage::from_fn(width, height, |x, y| {
        let alpha = if x + y < 10 { 0 } else { 255 };
        Rgba([(x % 256) as u8, (y % 256) as u8, 128, alpha])
    })
    .into()
}

fn file(picture: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    picture.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

fn read(bytes: &[u8], limits: &Limits) -> Result<Extracted, Unreadable> {
    extract(bytes, "scan", limits)
}

fn only(read: Result<Extracted, Unreadable>) -> Picture {
    let mut read = read.unwrap();
    assert!(read.text.is_empty() && read.pictures.len() == 1);
    read.pictures.pop().unwrap()
}

#[test]
fn what_fits_is_sent_as_it_is_and_what_does_not_is_scaled() {
    let limits = Limits { picture_edge: 100, ..Limits::default() };
    let (small, large) = (drawn(60, 100), drawn(300, 150));
    for (format, kind, media_type) in [
        (ImageFormat::Png, Format::Png, "image/png"),
        (ImageFormat::Jpeg, Format::Jpeg, "image/jpeg"),
        (ImageFormat::WebP, Format::Webp, "image/webp"),
    ] {
        let (small, large) = match format {
            ImageFormat::Jpeg => (small.to_rgb8().into(), large.to_rgb8().into()),
            _ => (small.clone(), large.clone()),
        };
        let bytes = file(&small, format);
        let whole = read(&bytes, &limits);
        assert_eq!(whole.as_ref().unwrap().format, kind);
        let whole = only(whole);
        assert_eq!((whole.media_type.as_str(), whole.bytes), (media_type, bytes));
        let scaled = only(read(&file(&large, format), &limits));
        assert_eq!((scaled.width, scaled.height), (100, 50));
        let seen = image::load_from_memory(&scaled.bytes).unwrap();
        assert_eq!((seen.width(), seen.height()), (100, 50));
    }
    // No vendor takes TIFF.
    let scan = only(read(&file(&small, ImageFormat::Tiff), &limits));
    assert_eq!((scan.media_type.as_str(), scan.width), ("image/png", 60));
    // Too many bytes for PNG, and for JPEG at the first size.
    let tight = Limits { picture_bytes: 4_000, ..limits };
    let noise = DynamicImage::from(RgbaImage::from_fn(100, 100, |x, y| {
        let n = (x * 7_919 + y * 104_729).wrapping_mul(2_654_435_761) >> 8;
        Rgba([n as u8, (n >> 8) as u8, (n >> 16) as u8, 255])
    }));
    let lossy = only(read(&file(&noise, ImageFormat::Png), &tight));
    assert!(
        lossy.media_type == "image/jpeg" && lossy.bytes.len() <= 4_000,
        "{}",
        lossy.bytes.len()
    );
}

#[test]
fn a_photograph_taken_upright_is_sent_upright() {
    let flat = file(&drawn(80, 40).to_rgb8().into(), ImageFormat::Jpeg);
    // An Exif segment with an orientation: turned by a quarter.
    let tag =
        b"\xff\xe1\x00\x22Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
    let turned = [&flat[..2], &tag[..], &flat[2..]].concat();
    let picture = only(read(&turned, &Limits::default()));
    assert_eq!((picture.width, picture.height), (40, 80));
}

/// The list of pages of a TIFF, changed to contain one twice, and to be circular.
#[test]
fn further_pages_of_a_scan_are_named() {
    let whole = file(&drawn(9, 9), ImageFormat::Tiff);
    assert!(read(&whole, &Limits::default()).unwrap().left_out.is_empty());
    let at = u32::from_le_bytes(whole[4..8].try_into().unwrap()) as usize;
    let entries = usize::from(u16::from_le_bytes(whole[at..at + 2].try_into().unwrap()));
    let (end, next) = (at + 2 + entries * 12, whole.len() as u32);
    let mut two = whole.clone();
    two.extend_from_slice(&whole[at..end]);
    two.extend_from_slice(&[0; 4]);
    two[end..end + 4].copy_from_slice(&next.to_le_bytes());
    let read_two = read(&two, &Limits::default()).unwrap();
    assert_eq!((read_two.pages, read_two.left_out.pages()), (Some(2), vec![2]));
    let mut circle = whole;
    circle[end..end + 4].copy_from_slice(&(at as u32).to_le_bytes());
    let error = read(&circle, &Limits::default()).unwrap_err().to_string();
    assert!(error.starts_with("the TIFF image is damaged"), "{error}");
}

#[test]
fn what_cannot_be_read_is_named() {
    let mut bomb = file(&drawn(9, 9), ImageFormat::Png);
    bomb[16..24].copy_from_slice(&[0, 1, 0, 0, 0, 1, 0, 0]);
    let error = read(&bomb, &Limits::default()).unwrap_err().to_string();
    assert!(error.starts_with("the PNG image is damaged"), "{error}");
    // Text has no place for a picture in an archive.
    let good = file(&drawn(9, 9), ImageFormat::Png);
    let read = extract(&archive(&[("p.png", &good)]), "a.zip", &Limits::default()).unwrap();
    assert_eq!(
        read.text,
        "[p.png: this is a PNG image, which is not read within another document; take it out of that]"
    );
}

#[test]
fn damaged_pictures() {
    let mut dice = Dice(15);
    for format in [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::WebP, ImageFormat::Tiff] {
        let whole = file(&drawn(40, 30).to_rgb8().into(), format);
        let mut well = 0;
        for number in 0..500 {
            let mut bytes = whole.clone();
            dice.damage(&mut bytes);
            let read = catch_unwind(AssertUnwindSafe(|| read(&bytes, &Limits::default())));
            match read.unwrap_or_else(|_| panic!("{format:?}, damaged file {number}")) {
                Ok(_) => well += 1,
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
        assert!(well < 500, "{format:?}");
    }
}

#[test]
fn a_picture_of_too_many_pixels_is_named_with_its_size() {
    let mut bytes = file(&drawn(60, 100), ImageFormat::Png);
    // The width and the height, and the header's checksum.
    bytes[16..24].copy_from_slice(&[60_000_u32.to_be_bytes(); 2].concat());
    let mut checksum = flate2::Crc::new();
    checksum.update(&bytes[12..29]);
    bytes[29..33].copy_from_slice(&checksum.sum().to_be_bytes());
    let refused = read(&bytes, &Limits::default()).unwrap_err().to_string();
    assert!(refused.contains("60000 × 60000 pixels; at most 30000 on an edge"), "{refused}");
}
