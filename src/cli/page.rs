//! The page: the content of `tidegate top` in a browser, with buttons for an operator's actions.
//!
//! Reading is open on loopback; elsewhere it needs the token. An action always needs the token, in
//! a header that no form of another site can send, and is logged with its reason. Requests with a
//! foreign `Host` are refused, because another site's page could reach this machine's loopback with
//! them. The page's policy forbids resources from elsewhere.
//!
//! # Layout
//!
//! * `server`: the address and the routes
//! * `access`: read and action rights
//! * `actions`: the actions
//! * `html`: renders a snapshot; `chart`: draws an hour as a line

mod access;
mod actions;
mod chart;
mod html;
mod server;

pub(super) use server::{Page, start, start_for_one};
