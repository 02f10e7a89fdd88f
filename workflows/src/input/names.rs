//! The field names of a struct, and the error for an unknown name.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, de::Visitor, forward_to_deserialize_any};
use serde_json::Value;

/// The names of all fields of a struct, in its order.
pub(super) fn field_names<'de, T: Deserialize<'de>>() -> &'static [&'static str] {
    match T::deserialize(Names) {
        Ok(_) => &[],
        Err(Fields(names)) => names,
    }
}

/// The first field of an input that has a value and is none of these.
pub(super) fn first_beside(names: &[&str], input: &impl Serialize) -> Option<String> {
    let Ok(Value::Object(fields)) = serde_json::to_value(input) else { return None };
    let mut given = fields.into_iter().filter(|(_, value)| !value.is_null());
    given.find(|(name, _)| !names.contains(&name.as_str())).map(|(name, _)| name)
}

/// A deserializer that yields no value: asked for a struct, it fails with the struct's field names.
struct Names;

#[derive(Debug)]
struct Fields(&'static [&'static str]);

impl fmt::Display for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(", "))
    }
}

impl std::error::Error for Fields {}

impl serde::de::Error for Fields {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self(&[])
    }
}

impl<'de> Deserializer<'de> for Names {
    type Error = Fields;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Fields> {
        Err(Fields(&[]))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Fields> {
        Err(Fields(fields))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// The error for an unknown field, with the most similar known name.
pub(super) fn unknown(field: &str, known: &[&str]) -> String {
    // Cut before the comparison: the distance takes time and memory in proportion to the length.
    let field: String = field.chars().take(60).collect();
    let near = known.iter().map(|known| (strsim::damerau_levenshtein(known, &field), known)).min();
    let hint = match near {
        // A short name with half of its letters changed is another name.
        Some((distance, known)) if distance <= 3 && 2 * distance <= known.len() => {
            format!("; did you mean \"{known}\"?")
        }
        _ => ".".to_owned(),
    };
    format!("unknown field \"{}\"{hint} The fields are {}", field.escape_debug(), known.join(", "))
}
