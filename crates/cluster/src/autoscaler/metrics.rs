//! How many Pods the metrics ask for. Pure: Pods with their usage enter, a proposal leaves.
//!
//! Nothing runs on a simulated node, so a Pod's usage is what its annotations say: `windlass.dev/usage.cpu: 250m`,
//! `windlass.dev/usage.memory: 64Mi`, or any other name for metrics of type `Pods`.

use std::sync::Arc;

use windlass::k8s_openapi::{
    api::{
        autoscaling::v2::{
            ContainerResourceMetricStatus, HPAScalingRules, HorizontalPodAutoscalerBehavior,
            MetricIdentifier, MetricSpec, MetricStatus, MetricTarget, MetricValueStatus, PodsMetricStatus,
            ResourceMetricStatus,
        },
        core::v1::Pod,
    },
    apimachinery::pkg::api::resource::Quantity,
};

use crate::{pods, quantity};

/// The annotation with a Pod's usage begins so.
const USAGE: &str = "windlass.dev/usage.";

/// Changes smaller than this share are not worth a rescale, unless the autoscaler says another.
const TOLERANCE: f64 = 0.1;

/// The size of the target, and by how much a metric may miss it without anything being done.
#[derive(Clone, Copy)]
pub(super) struct Current {
    pub(super) replicas: i32,
    down: f64,
    up: f64,
}

impl Current {
    pub(super) fn new(replicas: i32, behavior: Option<&HorizontalPodAutoscalerBehavior>) -> Self {
        let share = |rules: Option<&HPAScalingRules>| {
            let told = rules.and_then(|rules| rules.tolerance.as_ref()).and_then(quantity::thousandths);
            told.map_or(TOLERANCE, |thousandths| thousandths as f64 / 1000.0)
        };
        let down = share(behavior.and_then(|behavior| behavior.scale_down.as_ref()));
        Self { replicas, down, up: share(behavior.and_then(|behavior| behavior.scale_up.as_ref())) }
    }

    /// Whether a ratio of usage to target is as good as one.
    fn tolerates(self, ratio: f64) -> bool {
        (1.0 - self.down..=1.0 + self.up).contains(&ratio)
    }
}

/// What one metric asks for.
pub(super) struct Proposal {
    pub(super) replicas: i32,
    /// The metric's name as events have it.
    pub(super) name: String,
    pub(super) status: MetricStatus,
}

/// Why a metric asks for nothing.
pub(super) struct Failure {
    pub(super) reason: &'static str,
    pub(super) message: String,
}

/// A Pod's part in the calculation, in thousandths.
struct Sample {
    usage: Option<i128>,
    request: i128,
    /// Whether it can be judged by its usage already.
    ready: bool,
}

/// What a metric asks for, given the Pods of the target.
pub(super) fn propose(spec: &MetricSpec, all: &[Arc<Pod>], current: Current) -> Result<Proposal, Failure> {
    match (&spec.resource, &spec.container_resource, &spec.pods) {
        (Some(source), _, _) => {
            let what = Resource { name: &source.name, container: None, target: &source.target };
            resource(&what, all, current)
        }
        (_, Some(source), _) => {
            let what =
                Resource { name: &source.name, container: Some(&source.container), target: &source.target };
            resource(&what, all, current)
        }
        (_, _, Some(source)) => average(&source.metric, &source.target, all, current),
        _ => Err(Failure {
            reason: "InvalidMetricSourceType",
            message: format!(
                "the HPA was unable to compute the replica count: metrics of type {} are not simulated: use Resource, \
                 ContainerResource or Pods",
                spec.type_
            ),
        }),
    }
}

/// What was tried in vain, in the words of the event.
pub(super) fn not_had(spec: &MetricSpec) -> String {
    match (&spec.resource, &spec.container_resource, &spec.pods) {
        (Some(source), _, _) => format!("failed to get {} resource metric value", source.name),
        (_, Some(source), _) => format!("failed to get {} container metric value", source.name),
        _ => format!("failed to get {} metric value", spec.type_.to_lowercase()),
    }
}

struct Resource<'a> {
    name: &'a str,
    container: Option<&'a str>,
    target: &'a MetricTarget,
}

impl Resource<'_> {
    fn fail(&self, why: &str) -> Failure {
        Failure {
            reason: if self.container.is_some() {
                "FailedGetContainerResourceMetric"
            } else {
                "FailedGetResourceMetric"
            },
            message: format!(
                "the HPA was unable to compute the replica count: failed to get {} {why}",
                if self.target.average_utilization.is_some() {
                    format!("{} utilization: unable to get metrics for resource {}:", self.name, self.name)
                } else {
                    format!("{} usage: unable to get metrics for resource {}:", self.name, self.name)
                }
            ),
        }
    }
}

fn samples(all: &[Arc<Pod>], metric: &str, container: Option<&str>) -> Vec<Sample> {
    let counts = |pod: &&Arc<Pod>| !pods::is_terminating(&pod.metadata) && pods::phase(pod) != "Failed";
    let sample = |pod: &Arc<Pod>| Sample {
        usage: pods::annotation(pod, &format!("{USAGE}{metric}"))
            .and_then(|text| quantity::thousandths(&Quantity(text.to_owned()))),
        request: request(pod, metric, container),
        ready: pods::phase(pod) != "Pending" && (metric != "cpu" || pods::is_ready(pod)),
    };
    all.iter().filter(counts).map(sample).collect()
}

fn request(pod: &Pod, resource: &str, container: Option<&str>) -> i128 {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let wanted = containers.filter(|one| container.is_none_or(|name| one.name == name));
    let requests = wanted.filter_map(|one| one.resources.as_ref()?.requests.as_ref()?.get(resource));
    requests.filter_map(quantity::thousandths).sum()
}

fn resource(what: &Resource<'_>, all: &[Arc<Pod>], current: Current) -> Result<Proposal, Failure> {
    let samples = samples(all, what.name, what.container);
    let known: Vec<&Sample> =
        samples.iter().filter(|sample| sample.ready && sample.usage.is_some()).collect();
    if known.is_empty() {
        return Err(what.fail("no metrics returned from resource metrics API"));
    }
    let used: i128 = known.iter().filter_map(|sample| sample.usage).sum();
    let mean = used / known.len() as i128;
    let (replicas, utilization) = match (what.target.average_utilization, &what.target.average_value) {
        (Some(target), _) => {
            let requested: i128 = known.iter().map(|sample| sample.request).sum();
            if requested == 0 {
                return Err(what.fail(&format!("missing request for {} in the Pods' containers", what.name)));
            }
            let utilization = i32::try_from(used * 100 / requested).unwrap_or(i32::MAX);
            let full = |sample: &Sample| sample.request * i128::from(target.max(100)) / 100;
            let ratio =
                |used: i128, requested: i128| used as f64 * 100.0 / requested as f64 / f64::from(target);
            let measure = |samples: &[(i128, i128)]| {
                ratio(samples.iter().map(|s| s.0).sum(), samples.iter().map(|s| s.1).sum::<i128>().max(1))
            };
            (replicas(&samples, current, &measure, &full), Some(utilization))
        }
        (None, Some(target)) => {
            let target = quantity::thousandths(target).unwrap_or(0).max(1);
            let measure = |samples: &[(i128, i128)]| {
                let used: i128 = samples.iter().map(|sample| sample.0).sum();
                used as f64 / (target as f64 * samples.len().max(1) as f64)
            };
            (replicas(&samples, current, &measure, &|_| target), None)
        }
        _ => return Err(what.fail("the target has neither averageUtilization nor averageValue")),
    };
    let current = MetricValueStatus {
        average_utilization: utilization,
        average_value: Some(amount(mean)),
        ..MetricValueStatus::default()
    };
    Ok(Proposal { replicas, name: describe(what), status: status(what, current) })
}

fn describe(what: &Resource<'_>) -> String {
    let kind = if what.container.is_some() { "container resource" } else { "resource" };
    match what.target.average_utilization {
        Some(_) => format!("{} {kind} utilization (percentage of request)", what.name),
        None => format!("{} {kind}", what.name),
    }
}

fn status(what: &Resource<'_>, current: MetricValueStatus) -> MetricStatus {
    match what.container {
        None => MetricStatus {
            type_: "Resource".into(),
            resource: Some(ResourceMetricStatus { name: what.name.to_owned(), current }),
            ..MetricStatus::default()
        },
        Some(container) => MetricStatus {
            type_: "ContainerResource".into(),
            container_resource: Some(ContainerResourceMetricStatus {
                name: what.name.to_owned(),
                container: container.to_owned(),
                current,
            }),
            ..MetricStatus::default()
        },
    }
}

fn average(
    metric: &MetricIdentifier,
    target: &MetricTarget,
    all: &[Arc<Pod>],
    current: Current,
) -> Result<Proposal, Failure> {
    let samples = samples(all, &metric.name, None);
    let usages: Vec<i128> =
        samples.iter().filter(|sample| sample.ready).filter_map(|sample| sample.usage).collect();
    if usages.is_empty() {
        return Err(Failure {
            reason: "FailedGetPodsMetric",
            message: format!(
                "the HPA was unable to compute the replica count: unable to get metric {}: no metrics returned from \
                 custom metrics API",
                metric.name
            ),
        });
    }
    let wanted = target.average_value.as_ref().and_then(quantity::thousandths).unwrap_or(0).max(1);
    let measure = |samples: &[(i128, i128)]| {
        let used: i128 = samples.iter().map(|sample| sample.0).sum();
        used as f64 / (wanted as f64 * samples.len().max(1) as f64)
    };
    let mean = usages.iter().sum::<i128>() / usages.len() as i128;
    let current_value =
        MetricValueStatus { average_value: Some(amount(mean)), ..MetricValueStatus::default() };
    Ok(Proposal {
        replicas: replicas(&samples, current, &measure, &|_| wanted),
        name: format!("pods metric {}", metric.name),
        status: MetricStatus {
            type_: "Pods".into(),
            pods: Some(PodsMetricStatus { metric: metric.clone(), current: current_value }),
            ..MetricStatus::default()
        },
    })
}

/// The ratio of usage to target of Pods, given as usage and request.
type Measure<'a> = dyn Fn(&[(i128, i128)]) -> f64 + 'a;

/// The replica count for a ratio of usage to target. Pods of which nothing is known count against any change:
/// as using nothing when there would be more, and as using `full` when there would be fewer.
fn replicas(
    samples: &[Sample],
    current: Current,
    measure: &Measure<'_>,
    full: &dyn Fn(&Sample) -> i128,
) -> i32 {
    let known: Vec<(i128, i128)> = samples
        .iter()
        .filter(|sample| sample.ready)
        .filter_map(|sample| Some((sample.usage?, sample.request)))
        .collect();
    let ratio = measure(&known);
    let unready = samples.iter().filter(|sample| !sample.ready).count();
    let missing = samples.iter().any(|sample| sample.ready && sample.usage.is_none());
    let close = |ratio: f64| current.tolerates(ratio);
    let uncertain = missing || unready > 0 && ratio > 1.0;
    if !uncertain {
        return if close(ratio) { current.replicas } else { (ratio * known.len() as f64).ceil() as i32 };
    }
    let mut filled = known;
    for sample in samples {
        match (sample.ready, sample.usage) {
            (true, None) if ratio < 1.0 => filled.push((full(sample), sample.request)),
            (true, None) => filled.push((0, sample.request)),
            (false, _) if ratio > 1.0 => filled.push((0, sample.request)),
            _ => {}
        }
    }
    let again = measure(&filled);
    let proposed = (again * filled.len() as f64).ceil() as i32;
    let turned = (ratio - 1.0) * (again - 1.0) < 0.0;
    let against =
        (again < 1.0 && proposed > current.replicas) || (again > 1.0 && proposed < current.replicas);
    if close(again) || turned || against { current.replicas } else { proposed }
}

/// Thousandths as a quantity.
fn amount(thousandths: i128) -> Quantity {
    if thousandths % 1000 == 0 {
        Quantity((thousandths / 1000).to_string())
    } else {
        Quantity(format!("{thousandths}m"))
    }
}

#[cfg(test)]
mod tests {
    use windlass::serde_json::{from_value, json};

    use super::*;
    use crate::pods::tests::PodFixture;

    fn pod(name: &str, usage: Option<&str>) -> Arc<Pod> {
        let mut pod = Pod::test(name).phase("Running").ready_at(1);
        pod.spec =
            from_value(json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": "100m"}}}]}))
                .unwrap();
        Arc::new(match usage {
            Some(usage) => pod.annotated("windlass.dev/usage.cpu", usage),
            None => pod,
        })
    }

    fn cpu(target: i32) -> MetricSpec {
        from_value(json!({"type": "Resource", "resource": {"name": "cpu", "target": {
            "type": "Utilization", "averageUtilization": target}}}))
        .unwrap()
    }

    fn proposed(target: i32, usages: &[Option<&str>]) -> i32 {
        let pods: Vec<_> = usages.iter().map(|usage| pod("p", *usage)).collect();
        propose(&cpu(target), &pods, Current::new(pods.len() as i32, None))
            .map_or(-1, |proposal| proposal.replicas)
    }

    #[test]
    fn usage_beyond_the_target_asks_for_more_pods() {
        assert_eq!(proposed(50, &[Some("100m"), Some("100m")]), 4);
        assert_eq!(proposed(50, &[Some("25m"), Some("25m")]), 1);
        assert_eq!(proposed(50, &[Some("52m"), Some("52m")]), 2, "a small difference is tolerated");
    }

    #[test]
    fn pods_without_metrics_count_against_a_change() {
        assert_eq!(proposed(50, &[Some("100m"), None]), 2);
        assert_eq!(proposed(50, &[Some("10m"), None]), 2);
        assert_eq!(proposed(50, &[None, None]), -1);
    }

    #[test]
    fn the_status_shows_the_average() {
        let proposal =
            propose(&cpu(50), &[pod("a", Some("30m")), pod("b", Some("50m"))], Current::new(2, None))
                .ok()
                .unwrap();
        let current = proposal.status.resource.unwrap().current;
        assert_eq!(
            (current.average_utilization, current.average_value.unwrap().0.as_str()),
            (Some(40), "40m")
        );
        assert_eq!(proposal.name, "cpu resource utilization (percentage of request)");
    }

    #[test]
    fn an_autoscaler_may_have_a_tolerance_of_its_own() {
        let behavior: HorizontalPodAutoscalerBehavior = windlass::serde_json::from_value(
            windlass::serde_json::json!({"scaleUp": {"tolerance": "0"}, "scaleDown": {"tolerance": "500m"}}),
        )
        .unwrap();
        let replicas = |usage: &str, behavior: Option<&HorizontalPodAutoscalerBehavior>| {
            let pods: Vec<_> = (0..10).map(|index| pod(&format!("p{index}"), Some(usage))).collect();
            propose(&cpu(50), &pods, Current::new(10, behavior)).map_or(-1, |proposal| proposal.replicas)
        };
        assert_eq!((replicas("52m", None), replicas("52m", Some(&behavior))), (10, 11));
        assert_eq!((replicas("40m", None), replicas("40m", Some(&behavior))), (8, 10));
    }
}
