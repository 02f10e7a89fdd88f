//! Reads an answer that is too large to be returned (`[calls] inline`) from its store.

use anyhow::Context;
use serde_json::Value;
use tidegate_activities::{services::Calls, storage::Error};

/// Loads the complete outcome of a call; the inner error is the reason why it cannot be read on
/// this machine. It is loaded only just before it is written, so that at most one large outcome is
/// in memory.
///
/// # Errors
/// The store does not answer: repeating the command reads it later.
pub(super) async fn load(
    outcome: Value,
    calls: Option<&Calls>,
) -> anyhow::Result<Result<Value, String>> {
    let Some(uri) = outcome["answer_uri"].as_str() else { return Ok(Ok(outcome)) };
    let unread = |why: &str| Ok(Err(format!("its answer is large and lies at {uri}: {why}")));
    let Some(calls) = calls else {
        return unread(
            "this command's configuration has no calls.answers; give it the workers' [calls] section",
        );
    };
    let bytes = match calls.place(uri) {
        Ok(place) => place.read().await,
        Err(error) => Err(error),
    };
    match bytes {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map(Ok)
            .or_else(|error| unread(&format!("that is no outcome of a call ({error})"))),
        Err(error @ Error::Failed(_)) => Err(error).context("reading a large answer"),
        Err(Error::Invalid(why)) => {
            unread(&format!("{why}; give this command the workers' [calls] section"))
        }
        Err(error) => unread(&error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn what_cannot_be_read_here_says_where_it_lies_and_why() {
        let folder = tempfile::tempdir().unwrap();
        let answers = url::Url::from_directory_path(folder.path().canonicalize().unwrap()).unwrap();
        let calls = Calls::open(answers.as_str(), &[], 1).unwrap();
        let small = json!({ "answer": "ebb" });
        assert_eq!(load(small.clone(), None).await.unwrap(), Ok(small));
        let unread = async |uri: &str, calls: Option<&Calls>| {
            let why = load(json!({ "answer_uri": uri }), calls).await.unwrap().unwrap_err();
            assert!(why.contains(&format!("lies at {uri}")), "{why}");
            why
        };
        let gone = format!("{answers}ab/gone.json");
        assert!(unread(&gone, None).await.contains("no calls.answers"));
        assert!(unread(&gone, Some(&calls)).await.contains("does not exist"));
        let elsewhere = unread("file:///elsewhere/a.json", Some(&calls)).await;
        assert!(elsewhere.contains("the workers' [calls] section"), "{elsewhere}");
        std::fs::write(folder.path().join("odd.json"), "ebb").unwrap();
        let odd = unread(&format!("{answers}odd.json"), Some(&calls)).await;
        assert!(odd.contains("no outcome of a call"), "{odd}");
    }
}
