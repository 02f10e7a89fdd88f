//! How a batch is labelled in Temporal's lists; this depends on the server's set-up.

use temporalio_client::{Client, NamespacedClient, tonic::IntoRequest};
use temporalio_common::protos::temporal::api::{
    enums::v1::IndexedValueType, operatorservice::v1::ListSearchAttributesRequest,
};
use tidegate_workflows::{contract::Labels, labels::NAMES};

/// Asks the server for the search attributes of its namespace. If it does not answer, batches get a
/// memo.
pub(crate) async fn find_labels(client: &Client) -> Labels {
    let request = ListSearchAttributesRequest { namespace: client.namespace() };
    let mut service = client.connection().operator_service();
    match service.list_search_attributes(request.into_request()).await {
        Ok(known) => {
            let known = known.into_inner().custom_attributes;
            let keyword = IndexedValueType::Keyword as i32;
            let has_all = NAMES.iter().all(|name| known.get(*name) == Some(&keyword));
            if has_all { Labels::SearchAttributes } else { Labels::Memo }
        }
        Err(error) => {
            tracing::debug!(%error, "which search attributes there are is not known");
            Labels::Memo
        }
    }
}
