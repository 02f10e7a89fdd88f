//! Processor time of processes.

use std::{fs, time::Duration};

/// Processor time that a process has taken so far; `None` where the system does not say.
pub fn processor_time(process: u32) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // Behind the name: user's and system's time, in hundredths of a second.
    let fields: Vec<&str> = stat.rsplit(") ").next()?.split(' ').collect();
    let ticks: u64 = fields.get(11..13)?.iter().filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Some(Duration::from_millis(10 * ticks))
}

/// Processor time of all children together.
pub(crate) fn of_children(process: u32) -> Option<Duration> {
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).ok()?;
    let children = children.split_whitespace().filter_map(|child| child.parse().ok());
    Some(children.filter_map(processor_time).sum())
}
