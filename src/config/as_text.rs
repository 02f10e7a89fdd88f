//! Configuration values that are written as text with a unit.

/// Implements text serialization for a type: what the type expects, and the error for a text that its
/// parser refuses.
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
