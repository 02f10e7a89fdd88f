//! A stand-in for LLM providers: it speaks their wire formats, keeps their limits, and accounts for
//! every window exactly.
//!
//! It shares no code with the rest of tidegate, so it can bear witness: what it refused, what it
//! answered twice and how full each minute was are counted here, by the side that the limits
//! protect.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use tidegate_simulator::{Config, Simulator};
//!
//! let config = Config::from_toml("[models.\"claude-sonnet-5\"]\nrpm = 50\nitpm = 30_000\notpm = 8_000")?;
//! let simulator = Simulator::start(config).await?;
//! println!("anthropic at {0}, openai at {0}/v1", simulator.base_url());
//! assert_eq!(simulator.account().refused().total(), 0);
//! simulator.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Layout
//!
//! * [`config`], [`limits`], [`fault`]: the configuration; `value` reads durations
//!   and says why a value is refused
//! * [`server`]: [`serve`] and [`Simulator`]; `wire` is the connection that can be cut
//! * `provider`: the way of one call through keys, faults, limits, work and answer; `state` is what
//!   calls share
//! * `vendor`, `call`, `problem`: what the vendors have in common; `anthropic`, `openai`,
//!   `responses`, `gemini`, `bedrock`: what each says on the wire
//! * `parameters`: what each refuses among the fields of a call; `strict`: which schemas
//! * `batch`: many calls at once that are answered later, with a file for each vendor and a store
//!   of what was taken in
//! * `cache`: beginnings of prompts that are remembered
//! * `answer`, `extract`, `schema`: what is answered, [`known`]: where the right answer is known; `embeddings`, `texts`: vectors; `tokens`: how tokens are counted; `rng`:
//!   chance that repeats itself
//! * `limiter`: one model's limits; `meter` is one dimension of it, with `bucket`, `fixed` and
//!   `sliding` as its algorithms, and `measure` for what they have in common
//! * [`account`]: what is accounted for; [`series`] is a part of it; `ledger` and `worst` keep it;
//!   `admission` is one call in it
//! * [`amounts`]: amounts by dimension

pub mod account;
mod admission;
pub mod amounts;
mod answer;
mod anthropic;
mod azure;
mod batch;
mod bedrock;
mod bucket;
mod cache;
mod call;
pub mod config;
mod embeddings;
mod extract;
pub mod fault;
mod fixed;
mod gemini;
pub mod known;
mod ledger;
mod limiter;
pub mod limits;
mod measure;
mod meter;
mod models;
mod openai;
mod parameters;
mod picture;
mod problem;
mod provider;
pub mod refused_key;
mod responses;
mod rng;
mod schema;
pub mod series;
pub mod server;
mod sliding;
mod state;
mod strict;
mod texts;
mod tokens;
mod value;
mod vendor;
mod vertex;
mod wire;
mod worst;

pub use account::{Account, ModelAccount};
pub use amounts::{Amounts, Dimension};
pub use batch::batches::Batches;
pub use config::{Config, Latency};
pub use fault::{Fault, FaultKind};
pub use known::Known;
pub use limits::{Algorithm, Charge, Limits};
pub use refused_key::RefusedKey;
pub use series::Series;
pub use server::{Simulator, serve};
pub use value::ConfigError;
