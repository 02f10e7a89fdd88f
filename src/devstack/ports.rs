//! Free loopback ports for children that must be told theirs.

use std::net::{Ipv4Addr, TcpListener};

use anyhow::Context;

/// `N` different ports of 127.0.0.1 that were free a moment ago.
///
/// Another program may take one before the child does; who starts the child tries again then.
///
/// # Errors
/// The system has no free port.
pub fn free<const N: usize>() -> anyhow::Result<[u16; N]> {
    let mut ports = [0; N];
    // All are held until each is known, so that they differ.
    let mut held = Vec::with_capacity(N);
    for port in &mut ports {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port on 127.0.0.1")?;
        *port = listener.local_addr().context("no free port on 127.0.0.1")?.port();
        held.push(listener);
    }
    Ok(ports)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_differ_and_are_free() {
        let [a, b, c] = free().unwrap();
        assert!(a != b && b != c && a != c);
        assert!(TcpListener::bind((Ipv4Addr::LOCALHOST, a)).is_ok());
    }
}
