//! Puts a Kubernetes operator through bad days, and replays any of them.
//!
//! A day is a whole world in one process, on one thread: the embedded cluster with its controllers and nodes, the operator as
//! its manifests install it, a user, and a network that fails. Its clock is paused and all chance comes from one seed, so that a day
//! takes milliseconds and **the same seed gives the same day**, byte by byte.
//!
//! ```no_run
//! # fn operator() -> windlass::Operator { windlass::Operator::new("shop-operator") }
//! # const SAMPLE: &str = "";
//! use windlass_sim::Simulation;
//!
//! #[test]
//! fn it_lives_through_bad_days() {
//!     Simulation::new(operator)
//!         .objects(SAMPLE) // include_str!("../config/samples/shop_v1_shop.yaml")
//!         .change("{spec: {replicas: 1}}")
//!         .change("{spec: {image: nginx:1.28}}")
//!         .run();
//! }
//! ```
//!
//! On a day the user creates the objects, makes some of the changes, deletes the main object and creates it anew, and in the end
//! deletes everything. Meanwhile somebody deletes or edits children; Pods fail, are evicted and deleted; nodes go down; the operator
//! dies before a request, after it, or is restarted; answers are lost, late, or 409, 429, 500 and 503; watches break, stall, lag
//! and come to an end with 410.
//!
//! What must hold on every day needs not a line from the author:
//!
//! - after the last fault everything comes to rest (`rest`), in the state of the same day without faults (`end`);
//! - at rest the operator writes nothing, and asks next to nothing (`writes-at-rest`, `hot-loop`);
//! - after the deletion nothing is left that has no owner, and nothing waits for a finalizer (`orphan`, `finalizer`);
//! - no request was forbidden (`forbidden`), no reconciler panicked (`panic`);
//! - a status says the generation that it describes (`observed-generation`).
//!
//! And [invariants](Simulation::invariant) of the author's own are checked after every change of any object.
//!
//! A bad day is made shorter, printed as a story with one line to replay it, and kept in a file beside the test.
//!
//! | Variable | |
//! |---|---|
//! | `SIM_DAYS` | how many days are lived |
//! | `SIM_FIRST` | the seed of the first of them |
//! | `SIM_SEED` | the one day that is lived, with its story |

mod chance;
mod day;
mod fault;
mod found;
mod network;
mod objects;
mod observer;
mod oracle;
mod plan;
mod regressions;
mod replica;
mod runner;
mod setup;
mod shrink;
mod simulation;
mod story;
mod user;

pub use found::Found;
pub use objects::Objects;
pub use simulation::Simulation;
