//! How much memory a worker may use for documents.

use crate::config::Config;

/// Where nothing says what the machine has.
const UNKNOWN: u64 = 4 << 30;

/// Bytes for documents, and as many for the processes that read them: half of `worker.memory` each.
pub(super) fn of_documents(config: &Config) -> u64 {
    let all = config.worker.memory.map_or_else(|| machine() / 2, |memory| *memory);
    all / 2
}

/// Processes that read documents at once: each may take all that it is bounded to.
pub(super) fn readers(config: &Config) -> usize {
    let most = of_documents(config) / config.documents.limits().memory.max(1);
    usize::try_from(most).unwrap_or(usize::MAX)
}

/// What this machine has, or this container may use.
fn machine() -> u64 {
    let read = |path| std::fs::read_to_string(path).ok();
    let container = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
        .into_iter()
        .find_map(|path| read(path)?.trim().parse::<u64>().ok());
    let machine = read("/proc/meminfo").and_then(|text| total(&text));
    container.into_iter().chain(machine).min().unwrap_or(UNKNOWN)
}

fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stated_counts_and_else_what_there_is() {
        let mut config = Config::default();
        assert!((64 << 20..machine()).contains(&of_documents(&config)));
        config.worker.memory = Some(crate::config::size::Size(4 << 30));
        assert_eq!(of_documents(&config), 2 << 30);
        config.documents.memory = crate::config::size::Size(512 << 20);
        assert_eq!(readers(&config), 4, "of 512 MiB each");
        assert_eq!(total("MemTotal:       16318480 kB\nMemFree: 1 kB"), Some(16_318_480 << 10));
    }
}
