//! How many objects each cache holds, read when asked for.

use std::{fmt, sync::Weak};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric},
    metrics::{MetricType, gauge::ConstGauge},
};

use crate::cache::Watched;

#[derive(Debug, EncodeLabelSet)]
struct Labels {
    group: String,
    kind: String,
}

/// The caches of one run.
pub(super) struct CacheGauges {
    pub(super) watches: Vec<Weak<dyn Watched>>,
}

impl fmt::Debug for CacheGauges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CacheGauges")
    }
}

impl Collector for CacheGauges {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let help = "Number of cached objects";
        let mut gauge = encoder.encode_descriptor("windlass_cache_objects", help, None, MetricType::Gauge)?;
        for watch in self.watches.iter().filter_map(Weak::upgrade) {
            let kind = watch.kind();
            let labels = Labels { group: kind.group.clone(), kind: kind.kind.clone() };
            ConstGauge::new(watch.len() as i64).encode(gauge.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
