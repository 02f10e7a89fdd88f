//! Leases: one batch at a time writes to an output.
//!
//! The holder of the last `_tidegate/lease-<n>` owns the output. A generation is only created,
//! never replaced, because local stores can create an object conditionally but not update one. It
//! names the run of a workflow, and is never removed: once Temporal reports that the run has ended,
//! the next generation may be created.

use serde::{Deserialize, Serialize};

use crate::{
    failure::{Failure, field_fault},
    output::{jsonl::json, layout::FOLDER},
    storage::{Error, Location},
};

const PREFIX: &str = "lease-";

/// Maximum number of tries to take over from an ended batch; other batches compete for the next
/// generation.
const MAX_TRIES: u32 = 5;

/// The run of a batch that holds a lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Temporal's namespace.
    pub namespace: String,
    /// The workflow's id.
    pub workflow: String,
    /// The run that planned the batch; runs that it continued as have other ids.
    pub run: String,
}

/// Takes the lease of an output for this batch. Can be repeated.
///
/// # Errors
/// `InvalidInput` while another batch runs there; `Transient` when the store or Temporal fails.
pub async fn take<F, Fut>(output: &Location, ours: &Holder, has_ended: F) -> Result<(), Failure>
where
    F: Fn(Holder) -> Fut,
    Fut: Future<Output = Result<bool, Failure>>,
{
    let folder = output.child(FOLDER);
    let of_output = |error| field_fault("output", error);
    for _ in 0..MAX_TRIES {
        let names = match folder.names().await {
            Ok(names) => names,
            Err(error @ Error::Failed(_)) => return Err(of_output(error)),
            Err(error) => {
                tracing::warn!(%error, "nothing keeps a second batch out of this output");
                return Ok(());
            }
        };
        let latest = names.iter().filter_map(|name| generation(name)).max();
        if let Some(latest) = latest
            && let Some(json) = folder.child(&name(latest)).read_if_there().await?
            // A lease that cannot be parsed names no run to look up.
            && let Ok(holder) = serde_json::from_slice::<Holder>(&json)
        {
            if holder == *ours {
                return Ok(());
            }
            // At most one run of a workflow is open at a time, and that is this one.
            let is_our_workflow =
                (&holder.namespace, &holder.workflow) == (&ours.namespace, &ours.workflow);
            if !is_our_workflow && !has_ended(holder.clone()).await? {
                return Err(held_by_another(output, &holder, &ours.namespace));
            }
        }
        let json = json(ours)?;
        let next = latest.map_or(1, |latest| latest + 1);
        match folder.child(&name(next)).create(json).await {
            Ok(()) => return Ok(()),
            Err(Error::Exists(_)) => {}
            Err(error) => return Err(of_output(error)),
        }
    }
    Err(Failure::transient(format!(
        "too many batches write to {output} at once; this one tries again"
    )))
}

fn held_by_another(output: &Location, holder: &Holder, our_namespace: &str) -> Failure {
    let Holder { namespace, workflow, run } = holder;
    let state = if namespace == our_namespace {
        ", which is running; wait for its end, cancel it, or choose another output".to_owned()
    } else {
        format!(
            " of the namespace \"{namespace}\", and its end is not known in \"{our_namespace}\"; wait for its end, cancel it, or choose another output; if it has ended, delete each {FOLDER}/{PREFIX}<number> in {output}"
        )
    };
    Failure::invalid_input(format!(
        "output {output} belongs to the batch \"{workflow}\" (run {run}){state}"
    ))
}

fn name(generation: u64) -> String {
    format!("{PREFIX}{generation}")
}

fn generation(name: &str) -> Option<u64> {
    name.strip_prefix(PREFIX)?.parse().ok()
}
