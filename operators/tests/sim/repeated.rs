//! The same seed gives the same day of an operator, byte by byte. The Database's passwords come from the system, so its days
//! are not compared.

use windlass_sim::Simulation;

fn same_twice(simulation: &Simulation, days: u64) {
    let (once, again) = (simulation.record(0..days), simulation.record(0..days));
    for (seed, (once, again)) in once.iter().zip(&again).enumerate() {
        for (line, (a, b)) in once.lines().zip(again.lines()).enumerate() {
            assert_eq!(a, b, "day {seed}, line {line}");
        }
        assert_eq!(once.len(), again.len(), "day {seed}");
    }
}

macro_rules! repeated {
    ($($kind:ident)+) => {
        $(#[test]
        fn $kind() {
            let days = std::env::var("SIM_DAYS").ok().and_then(|days| days.parse().ok()).unwrap_or(1);
            same_twice(&crate::$kind(), days);
        })+
    };
}

repeated! { webserver memcached helloworld podmanager imoocpod webapp }
