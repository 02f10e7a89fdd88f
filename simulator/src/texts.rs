//! Texts that a call wants embedded, and their vectors.
//!
//! A vector says which words a text has, so that texts about the same things lie near each other,
//! and the same text has the same vector in whichever call.

use base64::{Engine as _, engine::general_purpose::STANDARD};

use crate::rng;

/// The texts that a call wants embedded.
#[derive(Debug)]
pub(crate) struct Texts {
    pub(crate) each: Vec<String>,
    pub(crate) dimensions: usize,
    /// As the vendor's SDK asks for them.
    pub(crate) base64: bool,
}

impl Texts {
    /// The vectors, in the order of the texts.
    pub(crate) fn vectors(&self) -> impl Iterator<Item = Vec<f32>> {
        self.each.iter().map(|text| vector(text, self.dimensions))
    }
}

/// Single precision, the lowest byte first.
pub(crate) fn base64(vector: &[f32]) -> String {
    let bytes: Vec<u8> = vector.iter().flat_map(|number| number.to_le_bytes()).collect();
    STANDARD.encode(bytes)
}

/// Each word is a direction; the vector is their sum, of length 1.
// Vectors have single precision.
fn vector(text: &str, dimensions: usize) -> Vec<f32> {
    let mut sum = vec![0.0_f64; dimensions];
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let word = rng::hash(&word.to_lowercase());
        // Some places of each word are enough to tell it from the others.
        for place in 0..8_u64 {
            let drawn = rng::draw(&[word, place]);
            let at = usize::try_from(drawn % dimensions as u64).unwrap_or_default();
            sum[at] += if drawn >> 63 == 0 { 1.0 } else { -1.0 };
        }
    }
    if sum.iter().all(|it| *it == 0.0) {
        sum[0] = 1.0;
    }
    let length = sum.iter().map(|it| it * it).sum::<f64>().sqrt();
    sum.into_iter().map(|it| (it / length) as f32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_about_the_same_lie_near_each_other() {
        let near = |one: &str, other: &str| -> f32 {
            let (one, other) = (vector(one, 256), vector(other, 256));
            one.iter().zip(&other).map(|(one, other)| one * other).sum()
        };
        let invoice = "The invoice for lamps is due in May";
        assert!((near(invoice, invoice) - 1.0).abs() < 1e-5);
        assert!(
            near(invoice, "An invoice for lamps") > near(invoice, "Gulls over the harbour") + 0.2
        );
        assert_eq!(vector("", 3), [1.0, 0.0, 0.0]);
        assert_eq!(
            (base64(&[1.0]), base64(&[0.5, -2.0])),
            ("AACAPw==".into(), "AAAAPwAAAMA=".into())
        );
    }
}
