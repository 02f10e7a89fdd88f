//! The address of Redis: one server, the nodes of a cluster, or sentinels and their master's name.

use redis::Client;

/// What a URL names. The user and the password stand once in it, before the first host, and hold
/// for all nodes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Address<'u> {
    /// A URL as the client of one server reads it: `redis://`, `rediss://`, `unix://`.
    Single(&'u str),
    /// `redis+cluster://` or `rediss+cluster://`: the URL of each node.
    Cluster(Vec<String>),
    /// `redis+sentinel://` or `rediss+sentinel://`: the URL of each sentinel, and the name of the
    /// master.
    Sentinel(Vec<String>, &'u str),
}

impl<'u> Address<'u> {
    /// Reads a URL.
    ///
    /// # Errors
    /// Sentinels without the name of a master.
    pub(crate) fn read(url: &'u str) -> Result<Self, String> {
        let Some((scheme, rest)) = url.split_once("://") else { return Ok(Self::Single(url)) };
        match scheme.split_once('+') {
            Some((scheme @ ("redis" | "rediss"), "cluster")) => {
                Ok(Self::Cluster(nodes(scheme, rest)))
            }
            Some((scheme @ ("redis" | "rediss"), "sentinel")) => rest
                .split_once('/')
                .filter(|(_, master)| !master.is_empty())
                .map(|(sentinels, master)| Self::Sentinel(nodes(scheme, sentinels), master))
                .ok_or_else(|| "write redis+sentinel://host:port,host:port/master-name".to_owned()),
            _ => Ok(Self::Single(url)),
        }
    }
}

fn nodes(scheme: &str, list: &str) -> Vec<String> {
    let named = list.split(',').map(|node| match node.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, node),
    });
    let user = named.clone().find_map(|(user, _)| user);
    let user = user.map_or_else(String::new, |user| format!("{user}@"));
    named.map(|(_, host)| format!("{scheme}://{user}{host}")).collect()
}

/// Checks whether a connection to a URL can be opened. Connects to nothing.
pub(crate) fn check_url(url: &str) -> Result<(), String> {
    let check = |url: &str| Client::open(url).map(drop).map_err(|error| error.to_string());
    match Address::read(url)? {
        Address::Single(url) => check(url),
        Address::Cluster(nodes) | Address::Sentinel(nodes, _) => {
            nodes.iter().try_for_each(|node| check(node))
        }
    }
}

/// The URLs of the servers that a URL names; none for sentinels, which find the master.
pub(crate) fn servers(url: &str) -> Vec<String> {
    match Address::read(url) {
        Ok(Address::Single(url)) => vec![url.to_owned()],
        Ok(Address::Cluster(nodes)) => nodes,
        Ok(Address::Sentinel(..)) | Err(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_and_password_hold_for_every_node() {
        assert_eq!(servers("redis+cluster://a:1,b:2"), ["redis://a:1", "redis://b:2"]);
        let both = ["rediss://me:pw@a:1", "rediss://me:pw@b:2"];
        assert_eq!(servers("rediss+cluster://me:pw@a:1,b:2"), both);
        assert_eq!(servers("rediss+cluster://me:pw@a:1,me:pw@b:2"), both);
        assert_eq!(servers("rediss://a:1"), ["rediss://a:1"]);
        assert_eq!(servers("redis+unix:///run/redis"), ["redis+unix:///run/redis"]);
        let sentinels = "rediss+sentinel://:pw@a:1,b:2/main";
        assert_eq!(
            Address::read(sentinels).unwrap(),
            Address::Sentinel(vec!["rediss://:pw@a:1".into(), "rediss://:pw@b:2".into()], "main")
        );
        assert!(servers(sentinels).is_empty());
        for bad in ["redis+sentinel://a:1", "redis+sentinel://a:1/", "redis+cluster://a:99999"] {
            assert!(check_url(bad).is_err(), "{bad}");
        }
    }
}
