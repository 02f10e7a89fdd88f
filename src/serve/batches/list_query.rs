//! The query of a list, with cursors.

use std::collections::HashMap;

use axum::{
    Json,
    response::{IntoResponse as _, Response},
};
use serde_json::{Value, json};

use crate::serve::problem::{Form, Problem};

/// The query of a list.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ListQuery {
    pub(super) limit: usize,
    /// List the items after this id.
    pub(super) after: Option<String>,
    /// List the items directly before this id.
    pub(super) before: Option<String>,
    pub(super) oldest_first: bool,
}

/// A page of a list in the form of a dialect.
pub(super) fn page(form: Form, data: &[Value], has_more: bool) -> Response {
    let id = |item: Option<&Value>| item.map(|item| item["id"].clone());
    let (first, last) = (id(data.first()), id(data.last()));
    let mut page = json!({"data": data, "has_more": has_more, "first_id": first, "last_id": last});
    if form == Form::OpenAi {
        page["object"] = "list".into();
    }
    Json(page).into_response()
}

impl ListQuery {
    /// Reads a query's fields, in OpenAI's or Anthropic's names. `is_id` recognizes the ids of the list.
    ///
    /// # Errors
    /// A field has an invalid value.
    pub(super) fn read(
        query: &HashMap<String, String>,
        (usual, most): (usize, usize),
        is_id: impl Fn(&str) -> bool,
    ) -> Result<Self, Problem> {
        let mut wanted = Self { limit: usual, ..Self::default() };
        let cursor = |name: &str, value: &String| match is_id(value) {
            true => Ok(Some(value.clone())),
            false => Err(Problem::invalid(name, "must be an id of this list")),
        };
        for (name, value) in query {
            match name.as_str() {
                "limit" => {
                    let limit = value.parse().ok().filter(|limit| (1..=most).contains(limit));
                    wanted.limit = limit.ok_or_else(|| {
                        Problem::invalid("limit", &format!("must be a number from 1 to {most}"))
                    })?;
                }
                "after" | "after_id" => wanted.after = cursor(name, value)?,
                "before" | "before_id" => wanted.before = cursor(name, value)?,
                "order" => match value.as_str() {
                    "asc" => wanted.oldest_first = true,
                    "desc" => {}
                    _ => return Err(Problem::invalid("order", "must be asc or desc")),
                },
                _ => {}
            }
        }
        Ok(wanted)
    }

    /// Selects the page from these ids, newest first. Also returns whether more follow in the
    /// client's direction of reading.
    pub(super) fn select(&self, ids: Vec<String>) -> (Vec<String>, bool) {
        let mut found = self.ids_from_cursor(ids);
        let has_more = found.len() > self.limit;
        found.truncate(self.limit);
        (self.in_order(found), has_more)
    }

    /// The ids from the cursor on, the nearest to it first: a page has the first of them. `ids` are
    /// newest first. A cursor keeps its position in the order after its item is gone.
    pub(super) fn ids_from_cursor(&self, mut ids: Vec<String>) -> Vec<String> {
        if self.oldest_first {
            ids.reverse();
        }
        let comes_before = |one: &str, other: &str| match self.oldest_first {
            true => one < other,
            false => one > other,
        };
        let from = self
            .after
            .as_deref()
            .map_or(0, |after| ids.partition_point(|id| id == after || comes_before(id, after)));
        let to = self.before.as_deref().map_or(ids.len(), |before| {
            ids.partition_point(|id| comes_before(id, before)).max(from)
        });
        ids.truncate(to);
        ids.drain(..from);
        self.in_order(ids)
    }

    /// Turns a page from the order of [`Self::ids_from_cursor`] into the order of the list, or back.
    pub(super) fn in_order<T>(&self, mut page: Vec<T>) -> Vec<T> {
        if self.before.is_some() {
            page.reverse();
        }
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_each_other_in_both_directions() {
        let ids = || ["e", "d", "c", "b", "a"].map(str::to_owned).to_vec();
        let page = |query: &[(&str, &str)]| {
            let query = query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            let wanted = ListQuery::read(&query.collect(), (2, 3), |id| id != "no id");
            let (page, more) = wanted.unwrap().select(ids());
            (page.concat(), more)
        };
        let is = |text: &str, more| (text.to_owned(), more);
        assert_eq!(page(&[]), is("ed", true));
        assert_eq!(page(&[("after", "d")]), is("cb", true));
        assert_eq!(page(&[("after_id", "b")]), is("a", false));
        assert_eq!(page(&[("before_id", "b")]), is("dc", true));
        assert_eq!(page(&[("order", "asc"), ("limit", "3")]), is("abc", true));
        assert_eq!(page(&[("order", "asc"), ("after", "d")]), is("e", false));
        // The item that the cursor names is gone.
        assert_eq!(page(&[("after", "c2")]), is("cb", true));
        assert_eq!(page(&[("before_id", "b2")]), is("dc", true));
        assert_eq!(page(&[("after", "0")]), is("", false));
        let limits = [("limit", "0"), ("limit", "4"), ("limit", "x"), ("order", "up")];
        let cursors = ["after", "after_id", "before", "before_id"].map(|name| (name, "no id"));
        for (name, value) in limits.into_iter().chain(cursors) {
            let query = HashMap::from([(name.to_owned(), value.to_owned())]);
            let refused = ListQuery::read(&query, (2, 3), |id| id != "no id").unwrap_err();
            assert!(refused.message.starts_with(&format!("{name} must be")), "{}", refused.message);
        }
    }
}
