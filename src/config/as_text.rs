//! Values that stand in the configuration as people write them.

/// Writes a type as its text, and reads it: what is expected of it, and what is said of a text that it
/// is not, by the text and by what its own reader says.
macro_rules! read_as_text {
    ($type:ident, $expected:literal, $refused:expr) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;

                impl serde::de::Visitor<'_> for Visitor {
                    type Value = $type;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str($expected)
                    }

                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$type, E> {
                        let refused: fn(&str, String) -> String = $refused;
                        text.parse().map_err(|why| E::custom(refused(text, why)))
                    }
                }

                deserializer.deserialize_str(Visitor)
            }
        }
    };
}

pub(super) use read_as_text;
