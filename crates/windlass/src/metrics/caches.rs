//! How many objects each cache holds and about how large they are, read when asked for.

use std::{collections::BTreeMap, fmt};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric},
    metrics::{MetricType, gauge::ConstGauge},
};

use crate::cache::{Watched, WeakCaches};

#[derive(Debug, EncodeLabelSet)]
struct Labels {
    group: String,
    kind: String,
}

/// The caches of one run.
#[derive(Debug)]
pub(super) struct CacheGauges {
    pub(super) caches: WeakCaches,
}

pub(super) type Figure = fn(&dyn Watched) -> usize;

/// What is shown of every cache.
pub(super) const FIGURES: [(&str, &str, Figure); 3] = [
    ("windlass_cache_objects", "Number of cached objects", |watch| watch.len()),
    ("windlass_cache_bytes", "Estimated memory of the cached objects", |watch| watch.bytes()),
    (
        "windlass_cache_unreadable_objects",
        "Number of objects that exist and that this program cannot read",
        |watch| watch.unreadable(),
    ),
];

impl Collector for CacheGauges {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let watches = self.caches.watches();
        for (name, help, figure) in FIGURES {
            let mut gauge = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            // Several caches may hold objects of one kind.
            let mut by_kind: BTreeMap<(&str, &str), usize> = BTreeMap::new();
            for seen in &watches {
                let kind = seen.watch.kind();
                *by_kind.entry((&kind.group, &kind.kind)).or_default() += figure(&*seen.watch);
            }
            for ((group, kind), value) in by_kind {
                let labels = Labels { group: group.to_owned(), kind: kind.to_owned() };
                ConstGauge::new(value as i64).encode(gauge.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}
