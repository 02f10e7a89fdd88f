//! Which models were compared for a question: `tidegate compare` writes this into its output, and a
//! batch whose route states `compared` reads it there.
//!
//! The object is `_tidegate/<question>.json`, by the fingerprint of the question without its model. In a
//! prefix of several questions the output is a [folder](folder) of its own.

use serde::{Deserialize, Serialize};
use tidegate_types::ModelId;

use crate::{
    failure::{Failure, field_fault},
    fingerprint::Fingerprint,
    output::{
        agreement::Rate,
        jsonl::pretty,
        layout,
        question::StatedQuestion,
        recorded_question::{self, RecordedQuestion},
    },
    storage::{Error, Location},
};

/// What a comparison writes at the top of its output.
const FILES: [&str; 2] = ["comparison.json", "disagreements.jsonl"];

/// A model and everything that it was asked, parameters included.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelQuestion {
    /// The name by which a batch asks it.
    pub model: ModelId,
    /// The fingerprint of its results.
    pub question: Fingerprint,
}

/// Rate at which two models agree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// The two models.
    pub models: [ModelQuestion; 2],
    /// Rate of agreeing answers, over the documents that both have answered.
    #[serde(flatten)]
    pub documents: Rate,
}

/// The comparisons for one question.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Comparisons {
    /// Each pair of models once.
    pub pairs: Vec<Pair>,
}

/// Whether a comparison may write its files to this output.
///
/// # Errors
/// `InvalidInput` names a file there of other origin; otherwise the store's failure.
pub async fn check(output: &Location) -> Result<(), Failure> {
    let recorded = recorded_question::location(output).size().await;
    match recorded.map_err(|error| field_fault("output", error))? {
        Some(_) => Ok(()),
        None => recorded_question::check_foreign(output, FILES).await,
    }
}

impl Comparisons {
    /// Reads the comparisons for this question in the output of a comparison.
    ///
    /// # Errors
    /// `InvalidInput` when the object is damaged; otherwise the store's failure.
    pub async fn read(output: &Location, question: Fingerprint) -> Result<Self, Failure> {
        let place = place(output, question);
        let bytes = place.read_if_there().await;
        let there = bytes.map_err(|error| field_fault("compared", error))?;
        let read = there.map(|bytes| serde_json::from_slice(&bytes)).transpose();
        let read = read.map_err(|error| {
            Failure::invalid_input(format!("{place} is damaged: {error}; compare anew"))
        })?;
        Ok(read.unwrap_or_default())
    }

    /// Reads the comparisons for this question in all outputs under a prefix.
    ///
    /// # Errors
    /// The errors of [`Self::read`].
    pub async fn read_all(prefix: &Location, question: Fingerprint) -> Result<Self, Failure> {
        let mut all = Self::read(prefix, question).await?;
        let own = Self::read(&prefix.child(&folder(question)), question).await?;
        all.pairs.extend(own.pairs);
        Ok(all)
    }

    /// Adds a pair, and replaces an older one of these models.
    pub fn insert(&mut self, pair: Pair) {
        self.remove(&pair.models);
        self.pairs.push(pair);
    }

    /// Removes the pair of these models.
    pub fn remove(&mut self, models: &[ModelQuestion; 2]) {
        let names = |of: &[ModelQuestion; 2]| of.each_ref().map(|it| it.model.clone());
        let [one, other] = names(models);
        let both = [[one.clone(), other.clone()], [other, one]];
        self.pairs.retain(|known| !both.contains(&names(&known.models)));
    }

    /// The rate at which these two agree, if both were asked this and have answers in common.
    pub fn agreement_of(&self, one: &ModelQuestion, other: &ModelQuestion) -> Option<Rate> {
        let both = |pair: &&Pair| pair.models.contains(one) && pair.models.contains(other);
        let rates = self.pairs.iter().filter(both).map(|pair| pair.documents);
        rates.filter(|rate| rate.compared > 0).max_by_key(|rate| rate.compared)
    }

    /// Writes it into the output of a comparison, and the question (without its model) if none is
    /// recorded there: by that, an output is recognised.
    ///
    /// # Errors
    /// The store's failure.
    pub async fn write(&self, output: &Location, question: &StatedQuestion) -> Result<(), Failure> {
        let of_output = |error| field_fault("output", error);
        let recorded = pretty(&RecordedQuestion { question: question.clone() })?;
        match recorded_question::location(output).create(recorded).await {
            Ok(()) | Err(Error::Exists(_)) => {}
            Err(error) => return Err(of_output(error)),
        }
        place(output, question.fingerprint()).write(pretty(self)?).await.map_err(of_output)
    }
}

/// The name of a question's folder in a prefix of several questions.
pub fn folder(question: Fingerprint) -> String {
    question.to_string().chars().take(16).collect()
}

fn place(output: &Location, question: Fingerprint) -> Location {
    output.child(layout::FOLDER).child(&format!("{question}.json"))
}

/// The question that the results of an output answer, if it is known.
///
/// # Errors
/// `Transient` when the store fails.
pub async fn question_of(output: &Location) -> Result<Option<StatedQuestion>, Failure> {
    let there = recorded_question::location(output).read_if_there().await?;
    let recorded = there.and_then(|json| serde_json::from_slice::<RecordedQuestion>(&json).ok());
    Ok(recorded.map(|recorded| recorded.question))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use super::*;
    use crate::storage::Storage;

    fn asked(model: &str, question: &str) -> ModelQuestion {
        let question = Fingerprint::of_bytes(question.as_bytes());
        ModelQuestion { model: model.parse().unwrap(), question }
    }

    #[tokio::test]
    async fn what_was_compared_is_found_by_its_question_and_by_what_each_model_was_asked() {
        let temporary = tempfile::tempdir().unwrap();
        let root = url::Url::from_directory_path(temporary.path().canonicalize().unwrap()).unwrap();
        let prefix = Storage::new([root.as_str()]).unwrap().resolve(root.as_str()).unwrap();
        let stated = serde_json::json!({"instructions": Fingerprint::of_bytes(b"Sum up.")});
        let stated: StatedQuestion = serde_json::from_value(stated).unwrap();
        let question = stated.fingerprint();
        let (one, other) = (asked("a:one", "x"), asked("a:two", "x"));
        let pair = |compared| Pair {
            models: [one.clone(), other.clone()],
            documents: Rate { agreed: 1, compared },
        };
        let mut known = Comparisons::default();
        known.insert(pair(0));
        assert_eq!(known.agreement_of(&one, &other), None, "nothing was answered");
        known.insert(pair(2));
        assert_eq!(known.pairs.len(), 1);
        for output in [prefix.clone(), prefix.child(&folder(question))] {
            assert_eq!(Comparisons::read_all(&prefix, question).await.unwrap().pairs, []);
            known.write(&output, &stated).await.unwrap();
            assert_eq!(question_of(&output).await.unwrap().as_ref(), Some(&stated));
            let read = Comparisons::read_all(&prefix, question).await.unwrap();
            assert_eq!(read.agreement_of(&other, &one).unwrap().compared, 2, "in either order");
            assert_eq!(read.agreement_of(&one, &asked("a:two", "with effort")), None);
            place(&output, question).delete().await.unwrap();
        }
        known.remove(&[other, one]);
        assert_eq!(known.pairs, []);
    }
}
