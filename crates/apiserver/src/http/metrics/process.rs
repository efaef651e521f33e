//! What the system says of this process, under the names that every client library of Prometheus has. Nothing, where the
//! system has no `/proc`.

use std::fs;

use super::Page;

/// How many ticks of the processor's clock a second has, on every Linux there is.
const TICKS: f64 = 100.0;

/// The size of a page of memory: told in kibibytes elsewhere, so that it need not be known.
const KIBIBYTE: f64 = 1024.0;

pub(super) fn write(page: &mut Page) {
    let Ok(stat) = fs::read_to_string("/proc/self/stat") else { return };
    // The name of the program may hold spaces; what follows its closing bracket does not.
    let fields: Vec<&str> = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
    let field = |number: usize| fields.get(number).and_then(|text| text.parse::<f64>().ok());
    let mut put = |name: &str, kind: &str, help: &str, value: Option<f64>| {
        if let Some(value) = value {
            page.family(name, kind, help);
            page.line(name, &[], value);
        }
    };
    let time = field(11).zip(field(12)).map(|(user, system)| (user + system) / TICKS);
    put("process_cpu_seconds_total", "counter", "Total user and system CPU time spent in seconds.", time);
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let limit =
        limits.lines().find_map(|line| line.strip_prefix("Max open files")?.split_whitespace().next());
    let limit = limit.and_then(|text| text.parse().ok());
    put("process_max_fds", "gauge", "Maximum number of open file descriptors.", limit);
    let open = fs::read_dir("/proc/self/fd").ok().map(|entries| entries.count() as f64);
    put("process_open_fds", "gauge", "Number of open file descriptors.", open);
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next());
    let resident = resident.and_then(|text| text.parse::<f64>().ok()).map(|size| size * KIBIBYTE);
    put("process_resident_memory_bytes", "gauge", "Resident memory size in bytes.", resident);
    let boot = fs::read_to_string("/proc/stat").unwrap_or_default();
    let boot = boot.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse::<f64>().ok());
    let start = boot.zip(field(19)).map(|(boot, start)| boot + start / TICKS);
    let help = "Start time of the process since unix epoch in seconds.";
    put("process_start_time_seconds", "gauge", help, start);
    put("process_virtual_memory_bytes", "gauge", "Virtual memory size in bytes.", field(20));
}
