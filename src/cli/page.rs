//! The page: what `tidegate top` shows, in a browser, with buttons for an operator's actions.
//!
//! Reading is open on loopback; elsewhere it needs the token. An action always needs it, in a header that
//! no form of another site can send, and is logged with its reason. Requests with a foreign `Host` are
//! refused, because another site's page would reach this machine's loopback that way. Nothing is loaded
//! from elsewhere, and the page's policy forbids it.
//!
//! # Layout
//!
//! * `server`: the address and the routes
//! * `access`: who may read, and who may act
//! * `actions`: the actions
//! * `html`: renders a snapshot; `chart`: draws an hour as a line

mod access;
mod actions;
mod chart;
mod html;
mod server;

pub(super) use server::{Page, start, start_for_one};
