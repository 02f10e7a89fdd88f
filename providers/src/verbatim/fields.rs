//! A JSON object that keeps the text of its fields unchanged.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error as _, MapAccess, Visitor},
    ser::SerializeMap as _,
};
use serde_json::{Map, Value, value::RawValue};

use crate::{
    error::{Error, Kind},
    json,
};

/// The body of a request: its fields in their order, each with its original text. Names are unique.
#[derive(Clone, Default)]
pub struct Fields(Vec<(String, Box<RawValue>)>);

/// The body is no JSON object, or has a field twice. The message quotes no value.
#[derive(Debug, thiserror::Error)]
#[error("the body is not one JSON object with each field once: {0}")]
pub struct FieldsError(String);

impl Fields {
    /// Reads a body.
    ///
    /// # Errors
    /// [`FieldsError`] states the fault and its place.
    pub fn read(body: &[u8]) -> Result<Self, FieldsError> {
        if json::has_too_many_values(body) {
            return Err(FieldsError("it has more values than any request".to_owned()));
        }
        serde_json::from_slice(body).map_err(|error| FieldsError(error.to_string()))
    }

    /// A field's value; `None` if absent.
    pub fn get(&self, name: &str) -> Option<Value> {
        serde_json::from_str(self.raw(name)?).ok()
    }

    /// A field's value in its original text; `None` if absent.
    pub fn raw(&self, name: &str) -> Option<&str> {
        let (_, value) = self.0.iter().find(|(given, _)| given == name)?;
        Some(value.get())
    }

    /// The first field whose value is JSON by its form but cannot be parsed, and the reason: it is
    /// nested too deep, a number in it is too large, or a text has half of a surrogate pair. The
    /// reason quotes no value.
    pub fn unreadable(&self) -> Option<(&str, String)> {
        self.0.iter().find_map(|(name, value)| {
            let error = serde_json::from_str::<Value>(value.get()).err()?;
            Some((name.as_str(), error.to_string()))
        })
    }

    /// Sets a field: in place if it exists, otherwise at the end.
    ///
    /// # Errors
    /// [`FieldsError`] if the value cannot be written as JSON.
    pub fn set(&mut self, name: &str, value: &Value) -> Result<(), FieldsError> {
        let unwritable = |error: serde_json::Error| FieldsError(error.to_string());
        let value = serde_json::value::to_raw_value(value).map_err(unwritable)?;
        match self.0.iter_mut().find(|(given, _)| given == name) {
            Some((_, place)) => *place = value,
            None => self.0.push((name.to_owned(), value)),
        }
        Ok(())
    }

    /// The JSON with this model's name.
    pub(crate) fn naming(&self, model: &str) -> Result<Vec<u8>, Error> {
        let mut named = self.clone();
        let set = named.set("model", &model.into());
        set.map_err(|error| Error::unsent(Kind::InvalidRequest, &error.to_string()))?;
        Ok(named.to_vec())
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// Writes the object as JSON.
    pub fn to_vec(&self) -> Vec<u8> {
        // Texts and valid JSON: this cannot fail.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

impl TryFrom<&Map<String, Value>> for Fields {
    type Error = FieldsError;

    fn try_from(map: &Map<String, Value>) -> Result<Self, FieldsError> {
        let mut fields = Self::default();
        map.iter().try_for_each(|(name, value)| fields.set(name, value))?;
        Ok(fields)
    }
}

/// Shows only the names, because the values are a prompt.
impl fmt::Debug for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ReadFields)
    }
}

struct ReadFields;

impl<'de> Visitor<'de> for ReadFields {
    type Value = Fields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
        let mut fields = Fields::default();
        while let Some(name) = map.next_key::<String>()? {
            if fields.names().any(|given| given == name) {
                return Err(A::Error::custom("a field comes twice"));
            }
            fields.0.push((name, map.next_value()?));
        }
        Ok(fields)
    }
}
