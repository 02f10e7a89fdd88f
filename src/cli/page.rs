//! The page: what `tidegate top` shows, in a browser, with buttons for what an operator does.
//!
//! Reading is open on loopback alone; elsewhere it wants the token. An action always wants it, in a
//! header that no form of another site can send, and is logged with who and why. A request whose
//! `Host` is a foreign name is turned away: that is how a page of another site would reach this
//! machine's loopback. Nothing is loaded from elsewhere, and the page's policy forbids it.
//!
//! # Layout
//!
//! * `server`: where it is served, and the routes
//! * `access`: who may read, and who may act
//! * `actions`: what can be done from it
//! * `html`: what it looks like, from a snapshot and from nothing else; `chart`: an hour in a line

mod access;
mod actions;
mod chart;
mod html;
mod server;

pub(super) use server::{Page, start, start_for_one};
