//! Gauges that are read from the queues when they are asked for: depth, unfinished work, longest run.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric},
    metrics::{MetricType, gauge::ConstGauge},
};

use crate::{object::ObjectKey, queue::Queue};

#[derive(Debug, EncodeLabelSet)]
struct DepthLabels {
    name: Arc<str>,
    controller: Arc<str>,
    priority: i32,
}

#[derive(Debug, EncodeLabelSet)]
struct Labels {
    name: Arc<str>,
    controller: Arc<str>,
}

type Queues = Vec<(Arc<str>, Weak<Queue<ObjectKey>>)>;

/// The queues of an operator, observed at every scrape.
#[derive(Clone, Debug, Default)]
pub(super) struct QueueGauges {
    queues: Arc<Mutex<Queues>>,
}

impl QueueGauges {
    pub(super) fn add(&self, name: Arc<str>, queue: &Arc<Queue<ObjectKey>>) {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner).push((name, Arc::downgrade(queue)));
    }

    fn live(&self) -> Vec<(Arc<str>, Arc<Queue<ObjectKey>>)> {
        let queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues.iter().filter_map(|(name, queue)| Some((name.clone(), queue.upgrade()?))).collect()
    }
}

impl Collector for QueueGauges {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let queues = self.live();
        let mut depth = encoder.encode_descriptor(
            "workqueue_depth",
            "Current depth of the queue",
            None,
            MetricType::Gauge,
        )?;
        for (name, queue) in &queues {
            let mut by_priority = queue.depth();
            by_priority.entry(crate::queue::Priority::NORMAL).or_default();
            for (priority, count) in by_priority {
                let labels =
                    DepthLabels { name: name.clone(), controller: name.clone(), priority: priority.0 };
                ConstGauge::new(count as i64).encode(depth.encode_family(&labels)?)?;
            }
        }
        for (metric, help, longest) in [
            (
                "workqueue_unfinished_work_seconds",
                "Seconds of work in progress, over all running keys",
                false,
            ),
            ("workqueue_longest_running_processor_seconds", "Seconds that the longest run has lasted", true),
        ] {
            let mut gauge = encoder.encode_descriptor(metric, help, None, MetricType::Gauge)?;
            for (name, queue) in &queues {
                let (total, max) = queue.unfinished();
                let seconds = if longest { max } else { total }.as_secs_f64();
                let labels = Labels { name: name.clone(), controller: name.clone() };
                ConstGauge::new(seconds).encode(gauge.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}
