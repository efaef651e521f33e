//! What the kernel says about this process, under the names that Prometheus' own clients use. Read when asked for.

use std::{fmt, fs};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
};

use crate::platform::{page_size, ticks_per_second};

#[derive(Debug)]
pub(super) struct ProcessMetrics;

/// One reading. What the kernel does not tell, as on systems without `/proc`, is left out.
#[derive(Debug, Default, PartialEq)]
struct Reading {
    gauges: Vec<(&'static str, &'static str, f64)>,
    counters: Vec<(&'static str, &'static str, f64)>,
}

impl Collector for ProcessMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let reading = Reading::take();
        for (name, help, value) in reading.gauges {
            let descriptor = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(value).encode(descriptor)?;
        }
        for (name, help, value) in reading.counters {
            let descriptor = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            ConstCounter::new(value).encode(descriptor)?;
        }
        Ok(())
    }
}

impl Reading {
    fn take() -> Self {
        let mut reading = Self::default();
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        reading.stat(&read("/proc/self/stat"), &read("/proc/stat"));
        reading.limits(&read("/proc/self/limits"));
        reading.network(&read("/proc/self/net/netstat"));
        if let Ok(open) = fs::read_dir("/proc/self/fd") {
            // One of them is this directory.
            let open = open.count().saturating_sub(1);
            reading.gauges.push(("process_open_fds", "Number of open file descriptors", open as f64));
        }
        reading
    }

    /// Fields are counted from the last bracket, since the program's name may hold anything.
    fn stat(&mut self, own: &str, machine: &str) {
        let fields: Vec<&str> =
            own.rsplit_once(") ").map(|(_, rest)| rest.split(' ').collect()).unwrap_or_default();
        let field = |number: usize| fields.get(number - 3).and_then(|text| text.trim().parse::<f64>().ok());
        let ticks = ticks_per_second();
        if let (Some(user), Some(system)) = (field(14), field(15)) {
            let help = "Total user and system CPU time spent, in seconds";
            self.counters.push(("process_cpu_seconds", help, (user + system) / ticks));
        }
        if let Some(bytes) = field(23) {
            self.gauges.push(("process_virtual_memory_bytes", "Virtual memory size in bytes", bytes));
        }
        if let Some(pages) = field(24) {
            let bytes = pages * page_size();
            self.gauges.push(("process_resident_memory_bytes", "Resident memory size in bytes", bytes));
        }
        let boot = machine.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse::<f64>().ok());
        if let (Some(boot), Some(started)) = (boot, field(22)) {
            let help = "Start time of the process since the Unix epoch, in seconds";
            self.gauges.push(("process_start_time_seconds", help, boot + started / ticks));
        }
    }

    /// Soft limits; what is unlimited is as large as can be, as Go's client has it.
    fn limits(&mut self, limits: &str) {
        let soft = |name: &str| {
            let rest = limits.lines().find_map(|line| line.strip_prefix(name))?;
            match rest.split_whitespace().next()? {
                "unlimited" => Some(u64::MAX as f64),
                number => number.parse().ok(),
            }
        };
        if let Some(most) = soft("Max open files") {
            self.gauges.push(("process_max_fds", "Maximum number of open file descriptors", most));
        }
        if let Some(most) = soft("Max address space") {
            let help = "Maximum amount of virtual memory available, in bytes";
            self.gauges.push(("process_virtual_memory_max_bytes", help, most));
        }
    }

    /// A line of names, and a line of values in the same order.
    fn network(&mut self, netstat: &str) {
        let mut lines = netstat.lines().filter_map(|line| line.strip_prefix("IpExt: "));
        let (Some(names), Some(values)) = (lines.next(), lines.next()) else { return };
        let value = |wanted: &str| {
            let mut pairs = names.split(' ').zip(values.split(' '));
            pairs.find(|(name, _)| *name == wanted)?.1.parse::<f64>().ok()
        };
        let received =
            ("process_network_receive_bytes", "Number of bytes received over the network", "InOctets");
        let sent = ("process_network_transmit_bytes", "Number of bytes sent over the network", "OutOctets");
        for (metric, help, name) in [received, sent] {
            if let Some(bytes) = value(name) {
                self.counters.push((metric, help, bytes));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(of: &[(&'static str, &'static str, f64)], name: &str) -> f64 {
        of.iter().find(|(metric, ..)| *metric == name).unwrap_or_else(|| panic!("{name} in {of:?}")).2
    }

    #[test]
    fn the_kernels_words_are_understood() {
        let mut reading = Reading::default();
        let stat = "42 (a b) c) S 7 42 42 0 -1 4194560 1 0 0 0 150 50 3 4 20 0 1 0 1000 4096000 3 99";
        reading.stat(stat, "cpu 1\nbtime 1000000\n");
        reading.limits("Limit  Soft  Hard\nMax open files            1024   4096  files\nMax address space  unlimited unlimited bytes\n");
        reading.network("TcpExt: A\nTcpExt: 1\nIpExt: InNoRoutes InOctets OutOctets\nIpExt: 0 70 80\n");
        let ticks = ticks_per_second();
        assert!((value(&reading.counters, "process_cpu_seconds") - 200.0 / ticks).abs() < 1e-9);
        assert!((value(&reading.gauges, "process_start_time_seconds") - (1e6 + 1000.0 / ticks)).abs() < 1e-6);
        let page = page_size();
        assert_eq!(value(&reading.gauges, "process_resident_memory_bytes").to_bits(), (3.0 * page).to_bits());
        assert_eq!(value(&reading.gauges, "process_max_fds").to_bits(), 1024_f64.to_bits());
        assert!(value(&reading.gauges, "process_virtual_memory_max_bytes") > 1e19);
        assert_eq!(value(&reading.counters, "process_network_transmit_bytes").to_bits(), 80_f64.to_bits());
    }

    #[test]
    fn a_kernel_that_says_nothing_gives_nothing() {
        let mut reading = Reading::default();
        reading.stat("", "");
        reading.limits("");
        reading.network("");
        assert_eq!(reading, Reading::default());
    }

    #[tokio::test]
    async fn every_metric_of_controller_runtime_has_its_name() {
        let page = crate::metrics::tests::touched().await;
        for name in [
            "controller_runtime_reconcile_total{controller=\"box\",result=\"success\"}",
            "controller_runtime_reconcile_total{controller=\"box\",result=\"requeue_after\"}",
            "controller_runtime_reconcile_errors_total{controller=\"box\"} 1",
            "controller_runtime_terminal_reconcile_errors_total{controller=\"box\"}",
            "controller_runtime_reconcile_panics_total{controller=\"box\"}",
            "controller_runtime_reconcile_timeouts_total{controller=\"box\"}",
            "controller_runtime_reconcile_time_seconds_bucket{le=\"0.005\",controller=\"box\"}",
            "controller_runtime_max_concurrent_reconciles{controller=\"box\"} 2",
            "controller_runtime_active_workers{controller=\"box\"}",
            "workqueue_depth{name=\"box\",controller=\"box\",priority=\"0\"} 0",
            "workqueue_adds_total{name=\"box\",controller=\"box\"} 1",
            "workqueue_queue_duration_seconds_bucket{le=\"",
            "workqueue_work_duration_seconds_bucket{le=\"",
            "workqueue_unfinished_work_seconds{name=\"box\",controller=\"box\"}",
            "workqueue_longest_running_processor_seconds{name=\"box\",controller=\"box\"}",
            "workqueue_retries_total{name=\"box\",controller=\"box\"} 1",
            "controller_runtime_webhook_requests_total{webhook=\"/x\",code=\"200\"}",
            "controller_runtime_webhook_requests_in_flight{webhook=\"/x\"} 0",
            "controller_runtime_webhook_panics_total 0",
            "controller_runtime_conversion_webhook_panics_total 0",
            "certwatcher_read_certificate_total 0",
            "certwatcher_read_certificate_errors_total 0",
            "leader_election_master_status{name=\"lease\"} 0",
            "leader_election_slowpath_total{name=\"lease\"} 0",
            "rest_client_requests_total{code=\"200\",method=\"GET\",host=\"api:6443\"} 1",
        ] {
            assert!(page.contains(name), "{name} is missing:\n{page}");
        }
        // These are Linux' own to tell.
        for name in [
            "process_cpu_seconds_total ",
            "process_open_fds ",
            "process_max_fds ",
            "process_resident_memory_bytes ",
            "process_virtual_memory_bytes ",
            "process_virtual_memory_max_bytes ",
            "process_start_time_seconds ",
            "process_network_receive_bytes_total ",
            "process_network_transmit_bytes_total ",
        ] {
            assert_eq!(page.contains(name), cfg!(target_os = "linux"), "{name}:\n{page}");
        }
    }
}
