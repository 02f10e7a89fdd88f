//! The memory that a worker may use for documents.

use crate::config::Config;

/// Assumed memory of a machine that does not report it, in bytes.
const ASSUMED: u64 = 4 << 30;

/// Bytes for documents: half of `worker.memory`; the processes that read documents get the other half.
pub(super) fn for_documents(config: &Config) -> u64 {
    let all = config.worker.memory.map_or_else(|| available_memory() / 2, |memory| *memory);
    all / 2
}

/// Concurrent reader processes, each with its full memory limit.
pub(super) fn readers(config: &Config) -> usize {
    let most = for_documents(config) / config.documents.limits().memory.max(1);
    usize::try_from(most).unwrap_or(usize::MAX)
}

/// The machine's memory, or the container's limit, in bytes.
fn available_memory() -> u64 {
    let read = |path| std::fs::read_to_string(path).ok();
    let container = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
        .into_iter()
        .find_map(|path| read(path)?.trim().parse::<u64>().ok());
    let machine = read("/proc/meminfo").and_then(|text| parse_total(&text));
    container.into_iter().chain(machine).min().unwrap_or(ASSUMED)
}

fn parse_total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configured_memory_counts_and_otherwise_the_machines() {
        let mut config = Config::default();
        assert!((64 << 20..available_memory()).contains(&for_documents(&config)));
        config.worker.memory = Some(crate::config::size::Size(4 << 30));
        assert_eq!(for_documents(&config), 2 << 30);
        config.documents.memory = crate::config::size::Size(512 << 20);
        assert_eq!(readers(&config), 4, "of 512 MiB each");
        assert_eq!(
            parse_total("MemTotal:       16318480 kB\nMemFree: 1 kB"),
            Some(16_318_480 << 10)
        );
    }
}
