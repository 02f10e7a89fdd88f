//! Reads a whole body.

use std::time::Duration;

use axum::{
    body::{Body, Bytes, to_bytes},
    http::StatusCode,
};

use super::problem::Problem;

/// Time limit for a whole body to arrive.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Reads a whole body.
///
/// # Errors
/// The body is longer than `most` bytes, or does not arrive within [`TIME_LIMIT`].
pub(super) async fn read_whole_body(body: Body, most: usize) -> Result<Bytes, Problem> {
    match tokio::time::timeout(TIME_LIMIT, to_bytes(body, most)).await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(_)) => Err(Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("the body is longer than {most} bytes, or broke off; see serve.max-body"),
        )),
        Err(_) => Err(Problem::new(
            StatusCode::REQUEST_TIMEOUT,
            format!("the body did not come within {TIME_LIMIT:?}"),
        )),
    }
}
