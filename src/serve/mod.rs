//! The HTTP door, `tidegate serve`: programs that speak OpenAI's or Anthropic's dialect call through the
//! guard that documents use.
//!
//! The door has no state of its own: replicas stand behind any load balancer and share the limiter.
//! A call whose turn is near waits in place. A call whose turn is far is told its turn. It keeps
//! that turn by a ticket or, if its client knows no tickets, by a name made of the key, the model
//! and the body.
//!
//! # Layout
//!
//! * `server`: the routes; `door`: the door's state; `access`: the access log
//! * `keys`: the callers, and the models that each may ask
//! * `body`: reads a whole body; `client_call`: a client's request; `call`: one call from request to answer;
//!   `in_turn`: the call's turn
//! * `wait`: the time that a call waits in place; `turn`: tickets and names of turns
//! * `problem`: errors in the form of the client's dialect
//! * `usage_filter`: hides usage that the door asked for and the client did not
//! * `models`: `/v1/models`
//! * `batches`: files, and batches of requests as workflows

mod access;
mod batches;
mod body;
mod call;
mod client_call;
mod door;
mod in_turn;
mod keys;
mod models;
mod problem;
mod server;
mod turn;
mod usage_filter;
mod wait;

use std::{net::SocketAddr, sync::Arc};

use anyhow::{Context, Result};
use tidegate_calls::worker_status::WorkerFacts;
use tokio::{net::TcpListener, sync::Notify};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use self::{door::Door, keys::Keys, wait::LONGEST_WAIT};
use crate::{
    config::{Config, duration::HumanDuration},
    listener::{self, Bounds},
    runtime,
    telemetry::Telemetry,
    worker::{
        self,
        upkeep::{settle, upkeep},
    },
};

/// Limit of open connections.
const CONNECTIONS: usize = 10_000;

/// The task queue under which doors, apart from workers, share which keys are good. Workers' queues
/// have a namespace.
pub(crate) const QUEUE: &str = "serve";

/// A door that is bound and does not answer yet.
pub struct Serve {
    config: Config,
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    door: Arc<Door>,
}

impl Serve {
    /// Binds the door.
    ///
    /// # Errors
    /// The configuration cannot be used, the door would accept no caller, or the address cannot be
    /// listened on.
    pub async fn bind(config: &Config) -> Result<Self> {
        let listen = config.serve.address().ok_or_else(|| {
            let what = "is off; set it to an address and a port, such as 127.0.0.1:8080 (listen under [serve], or TIDEGATE_SERVE__LISTEN)";
            config.fault(&["serve", "listen"], what)
        })?;
        let mut config = config.clone();
        // The caller decides how long its call waits.
        config.worker.max_slot_wait = HumanDuration(LONGEST_WAIT);
        let listener = TcpListener::bind(listen).await.with_context(|| {
            format!("the address {listen} cannot be used; free the port, or set serve.listen to another address")
        })?;
        let bound = listener.local_addr()?;
        let tls = server::tls(&config.serve)?;
        let keys = Keys::new(&config, bound.ip().is_loopback())?;
        let services = worker::services(&config)?;
        let door = Arc::new(Door::new(&config, services, keys, bound)?);
        Ok(Self { config, listener, tls, door })
    }

    /// The address that the door listens on.
    pub fn address(&self) -> SocketAddr {
        self.door.bound
    }

    /// Answers until `shutdown` resolves; then takes no new call and waits for the calls under way.
    ///
    /// # Errors
    /// A newer program has taken over the quota.
    pub async fn run(
        self,
        telemetry: &Telemetry,
        shutdown: impl Future<Output = ()>,
    ) -> Result<()> {
        let Self { config, listener, tls, door } = self;
        let (warnings, missing) = (config.warnings(), config.missing_keys());
        let plain_text = config.serve.plain_text_warning();
        for warning in warnings.iter().chain(&missing).chain(&plain_text) {
            warn!("{warning}");
        }
        let (guard, identity) = (&door.services.guard, worker::identity());
        let (ended, outdated) = (CancellationToken::new(), Notify::new());
        let (place, about) =
            ((identity.as_str(), QUEUE), WorkerFacts { slots: 0, ..worker::about(&config) });
        let upkeep = upkeep(&config, &door.services, place, about, (&ended, &outdated))?;
        let stop = CancellationToken::new();
        // A call has a second connection, to its provider; a third of the files is for everything else.
        let files = runtime::open_files().and_then(|files| usize::try_from(files / 3).ok());
        let connections = files.map_or(CONNECTIONS, |files| files.min(CONNECTIONS));
        let bounds = Bounds { connections, tls, stop: stop.clone() };
        let serving = listener::serve_within(listener, server::router(&door), bounds);
        let watch = async {
            tokio::select! {
                () = shutdown => {}
                () = outdated.notified() => {}
            }
            let grace = config.shutdown_grace();
            info!("stopping: answers under way are waited for up to {grace:?}");
            telemetry.set_ready(false);
            door.stop();
            stop.cancel();
            tokio::time::sleep(grace).await;
        };
        let work = async {
            tokio::select! {
                () = serving => {}
                () = watch => {}
                () = guard.quota.keep_holds() => {}
                () = batches::sweep(&door) => {}
            }
            ended.cancel();
        };
        info!(at = %door.bound, %identity, "serving");
        telemetry.set_ready(true);
        let ((), kept) = tokio::join!(work, upkeep);
        settle(guard).await;
        info!("stopped");
        Ok(kept?)
    }
}

impl std::fmt::Debug for Serve {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Serve").field("bound", &self.door.bound).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ConfigError;

    #[tokio::test]
    async fn a_door_that_is_off_is_a_fault_of_the_configuration() {
        let Err(error) = Serve::bind(&Config::default()).await else { unreachable!("it is off") };
        assert!(error.is::<ConfigError>());
        let error = error.to_string();
        assert!(error.contains("serve.listen is off; set it to an address and a port"), "{error}");
    }
}
