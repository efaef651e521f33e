//! What Kubernetes means by a quantity, a schedule, a selector and a name.
//!
//! These are facts that an SDK, an API server, controllers and operators must agree on. Each is written once, here, and
//! follows what Kubernetes' own code does, down to its error messages:
//!
//! | Here | In Go |
//! |---|---|
//! | [`Quantity`] | `k8s.io/apimachinery/pkg/api/resource` |
//! | [`cron::Schedule`] | `github.com/robfig/cron/v3`, as the CronJob controller uses it |
//! | [`labels::Selector`], [`labels::LabelSelector`] | `k8s.io/apimachinery/pkg/labels`, `meta/v1` |
//! | [`fields::Selector`] | `k8s.io/apimachinery/pkg/fields` |
//! | [`names`] | `k8s.io/apimachinery/pkg/util/validation` |
//! | [`IntOrPercent`] | `k8s.io/apimachinery/pkg/util/intstr` |
//! | [`duration::parse`] | `time.ParseDuration` |
//! | [`Clock`] | `k8s.io/utils/clock` |
//!
//! Everything but the [`clock`] is pure: text and numbers come in, values leave. There is no client and no type of the
//! Kubernetes API, so that whoever needs one of these facts pays for nothing else.

#![deny(missing_docs)]

pub mod clock;
pub mod cron;
pub mod duration;
pub mod fields;
pub mod int_or_percent;
pub mod labels;
pub mod names;
pub mod quantity;

pub use clock::Clock;
pub use int_or_percent::IntOrPercent;
pub use quantity::Quantity;

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
