//! A connection that can be cut, as networks cut them: with a reset, at once or in the middle of an
//! answer.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    task::{Context, Poll},
};

use axum::{extract::connect_info::Connected, serve::IncomingStream};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
};

const WHOLE: u8 = 0;
const HALF: u8 = 1;
const CUT: u8 = 2;

/// A connection, as its handler holds it.
#[derive(Debug, Clone)]
pub(crate) struct Wire(Arc<AtomicU8>);

impl Wire {
    /// No further byte goes out.
    pub(crate) fn cut(&self) {
        self.0.store(CUT, Ordering::Release);
    }

    /// Half of what is written next goes out, and nothing after it.
    pub(crate) fn cut_in_half(&self) {
        self.0.store(HALF, Ordering::Release);
    }
}

impl Connected<IncomingStream<'_, Listener>> for Wire {
    fn connect_info(stream: IncomingStream<'_, Listener>) -> Self {
        stream.io().wire.clone()
    }
}

/// Accepts connections that can be cut.
#[derive(Debug)]
pub(crate) struct Listener(pub(crate) TcpListener);

impl axum::serve::Listener for Listener {
    type Io = Line;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Line, SocketAddr) {
        // The inner one logs and survives the errors of single connections.
        let (stream, address) = axum::serve::Listener::accept(&mut self.0).await;
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "no TCP_NODELAY");
        }
        (Line { stream, wire: Wire(Arc::new(AtomicU8::new(WHOLE))) }, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

#[derive(Debug)]
pub(crate) struct Line {
    stream: TcpStream,
    wire: Wire,
}

impl Line {
    fn state(&self) -> u8 {
        self.wire.0.load(Ordering::Acquire)
    }

    /// The error that makes the server drop the connection, which without lingering resets it.
    fn reset(&self) -> io::Error {
        if let Err(error) = self.stream.set_zero_linger() {
            tracing::debug!(%error, "the connection ends without a reset");
        }
        io::ErrorKind::ConnectionReset.into()
    }
}

impl AsyncRead for Line {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.state() == CUT {
            return Poll::Ready(Err(self.reset()));
        }
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl AsyncWrite for Line {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.state() {
            WHOLE => Pin::new(&mut self.stream).poll_write(cx, bytes),
            HALF => {
                let written =
                    Pin::new(&mut self.stream).poll_write(cx, &bytes[..bytes.len().div_ceil(2)]);
                if written.is_ready() {
                    self.wire.cut();
                }
                written
            }
            _ => Poll::Ready(Err(self.reset())),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.state() == CUT {
            return Poll::Ready(Err(self.reset()));
        }
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
