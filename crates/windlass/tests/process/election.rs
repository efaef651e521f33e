//! Two operators, one lease: release, death and partition, and a watch that outlives its API server's absence.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use serde_json::json;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use windlass::{
    k8s_openapi::api::core::v1::ConfigMap,
    kube::{
        Api, Client, Config,
        api::PostParams,
        config::{KubeConfigOptions, Kubeconfig},
    },
};

use crate::{
    child::Operator,
    operator::Parcel,
    setting::{self, Setting, eventually},
};

const LEADER: [&str; 4] =
    ["--leader-elect", "--enable-webhooks=false", "--health-probe-bind-address", "127.0.0.1:0"];
const MOMENT: Duration = Duration::from_secs(30);

/// Passes connections on to the API server until it is cut.
struct Proxy {
    address: SocketAddr,
    connections: Arc<Mutex<Option<JoinSet<()>>>>,
}

impl Proxy {
    async fn start(admin: &Kubeconfig) -> Self {
        let config =
            Config::from_custom_kubeconfig(admin.clone(), &KubeConfigOptions::default()).await.unwrap();
        let url = config.cluster_url;
        let target = format!("{}:{}", url.host().unwrap(), url.port_u16().unwrap_or(443));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(Mutex::new(Some(JoinSet::new())));
        let open = Arc::clone(&connections);
        tokio::spawn(async move {
            loop {
                let (mut near, _) = listener.accept().await.unwrap();
                let target = target.clone();
                // A cut proxy takes connections and closes them, like a host whose service is down.
                if let Some(open) = open.lock().unwrap().as_mut() {
                    open.spawn(async move {
                        if let Ok(mut far) = TcpStream::connect(target).await {
                            let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
                        }
                    });
                }
            }
        });
        Self { address, connections }
    }

    fn cut(&self) {
        *self.connections.lock().unwrap() = None;
    }

    fn mend(&self) {
        *self.connections.lock().unwrap() = Some(JoinSet::new());
    }
}

/// Creates a parcel and waits until this worker has dealt with it.
pub async fn dealt_with(setting: &Setting, name: &str, worker: &str) {
    let parcels = Api::<Parcel>::namespaced(setting.admin.clone(), &setting.namespace);
    let body: Parcel =
        serde_json::from_value(json!({"metadata": {"name": name}, "spec": {"grams": 1}})).unwrap();
    // Until the API server has seen that the webhooks are gone it may still ask them.
    eventually("the parcel is taken", || async {
        parcels.create(&PostParams::default(), &body).await.is_ok()
    })
    .await;
    let labels = Api::<ConfigMap>::namespaced(setting.admin.clone(), &setting.namespace);
    eventually("the parcel is dealt with", || async {
        let label = labels.get_opt(name).await.unwrap();
        label.and_then(|label| label.data?.remove("worker")).as_deref() == Some(worker)
    })
    .await;
}

/// A setting whose webhooks are not there: nobody serves them in these tests.
async fn unhooked(name: &str) -> Setting {
    let setting = Setting::new(name, setting::real()).await;
    setting.unhook().await;
    setting
}

pub fn real() {
    let _turn = setting::turn();
    setting::runtime().block_on(async {
        let setting = unhooked("election").await;
        let start = |name: &str| Operator::start(&setting.kubeconfig, name, &LEADER);
        let mut one = start("one");
        one.wrote("leading", MOMENT);
        let mut two = start("two");
        dealt_with(&setting, "a", "one").await;
        assert!(!two.output().contains("starting"), "a standby does not work");

        one.terminate();
        assert!(one.ended(MOMENT).success(), "{}", one.output());
        let ended = Instant::now();
        let took = two.wrote("leading", MOMENT).saturating_duration_since(ended);
        say(&format!("takeover after a release: {took:?} after the end of the process"));
        assert!(took < Duration::from_secs(5), "{took:?}");
        dealt_with(&setting, "b", "two").await;

        let proxy = Proxy::start(&setting::real()).await;
        let kubeconfig = setting.through(setting::real(), "three", proxy.address).await;
        let three = Operator::start(&kubeconfig, "three", &LEADER);
        three.wrote("waiting to lead", MOMENT);
        let died = Instant::now();
        two.kill();
        let took = three.wrote("leading", MOMENT).saturating_duration_since(died);
        say(&format!("takeover after kill -9: {took:?}"));
        assert!(took < Duration::from_secs(20), "the lease lasts 15 s: {took:?}");
        dealt_with(&setting, "c", "three").await;

        let four = start("four");
        proxy.cut();
        let cut = Instant::now();
        let left = three.wrote("stopped working, standing by", MOMENT);
        let taken = four.wrote("leading", MOMENT);
        say(&format!("partition: left after {:?}, taken after {:?}", left - cut, taken - cut));
        assert!(left < taken, "the old leader must have stopped before the lease can be taken");
        dealt_with(&setting, "d", "four").await;
        proxy.mend();
        four.terminate();
        eventually("the old leader leads again", || async { three.count("leading") == 2 }).await;
        dealt_with(&setting, "e", "three").await;
        assert!(!four.output().contains("Forbidden"), "the generated rules must suffice: {}", four.output());
        drop(four);
        setting.remove().await;
    });
}

/// An outage that is longer than the lease, on the embedded API server and with short times.
pub fn outage() {
    let quick = [
        "--leader-elect-lease-duration=3s",
        "--leader-elect-renew-deadline=2s",
        "--leader-elect-retry-period=250ms",
        "--request-timeout=2s",
    ];
    setting::runtime().block_on(async {
        survived("outage", setting::embedded().await, &quick, Duration::ZERO).await.abandon();
    });
}

/// The same on a real cluster, with the times that operators have, and for a minute.
pub fn long_outage() {
    let _turn = setting::turn();
    setting::runtime().block_on(async {
        let setting = survived("long-outage", setting::real(), &[], Duration::from_mins(1)).await;
        setting.remove().await;
    });
}

/// The process stays when the API server is away, and works again when it is back.
async fn survived(name: &str, admin: Kubeconfig, times: &[&str], away: Duration) -> Setting {
    let setting = Setting::new(name, admin.clone()).await;
    setting.unhook().await;
    let proxy = Proxy::start(&admin).await;
    let kubeconfig = setting.through(admin, "one", proxy.address).await;
    let port = setting::free_port("127.0.0.1".parse().unwrap());
    let probes = format!("--health-probe-bind-address=127.0.0.1:{port}");
    let args = [&["--leader-elect", LEADER[1], probes.as_str()], times].concat();
    let mut operator = Operator::start(&kubeconfig, "one", &args);
    dealt_with(&setting, "before", "one").await;
    proxy.cut();
    operator.wrote("stopped working, standing by", MOMENT);
    operator.wrote("failed to acquire the lease, retrying", MOMENT);
    tokio::time::sleep(away).await;
    assert_eq!(setting::probe(port, "/readyz").await.0, 503);
    assert_eq!(setting::probe(port, "/healthz").await.0, 200);
    proxy.mend();
    let mended = Instant::now();
    eventually("it leads again", || async { operator.count("leading") == 2 }).await;
    let led = mended.elapsed();
    dealt_with(&setting, "after", "one").await;
    say(&format!("after an outage: led after {led:?}, worked after {:?}", mended.elapsed()));
    assert!(!operator.output().contains("kube_client"), "kube's lines say all twice: {}", operator.output());
    operator.terminate();
    assert!(operator.ended(MOMENT).success(), "{}", operator.output());
    setting
}

/// An API server that is away at the start is waited for; so is a kind that is not installed.
pub fn waiting() {
    setting::runtime().block_on(async {
        let free = || setting::free_port("127.0.0.1".parse().unwrap());
        let address: SocketAddr = ([127, 0, 0, 1], free()).into();
        let away = setting::Away::new(address);
        let directory = setting::directory("waiting");
        let kubeconfig = directory.join("kubeconfig");
        let text = serde_json::to_string(&away.kubeconfig(&format!("https://{address}"))).unwrap();
        std::fs::write(&kubeconfig, text).unwrap();
        let port = free();
        let probes = format!("--health-probe-bind-address=127.0.0.1:{port}");
        let mut operator = Operator::start(&kubeconfig, "one", &["--enable-webhooks=false", &probes]);
        operator.wrote("cannot be reached, waiting for it", MOMENT);
        assert_eq!(setting::probe(port, "/healthz").await.0, 200);
        let (status, page) = setting::probe(port, "/readyz").await;
        assert!(status == 503 && page.contains("[-]operator failed: not started"), "{page}");

        let admin = away.begin().await;
        operator.wrote("the API server is there", MOMENT);
        operator.wrote("not started: a kind that it needs is not there yet", MOMENT);
        let (status, page) = setting::probe(port, "/readyz").await;
        assert!(status == 503 && page.contains("[-]watch-Parcel.process.windlass.dev failed"), "{page}");
        let config = Config::from_custom_kubeconfig(admin, &KubeConfigOptions::default()).await.unwrap();
        let client = Client::try_from(config).unwrap();
        crate::operator::plain().install(&client).await.unwrap();
        eventually("it is ready", || async { setting::probe(port, "/readyz").await.0 == 200 }).await;
        operator.terminate();
        assert!(operator.ended(MOMENT).success(), "{}", operator.output());
        std::fs::remove_dir_all(directory).unwrap();
    });
}

pub fn recovery() {
    let _turn = setting::turn();
    setting::runtime().block_on(async {
        let setting = unhooked("recovery").await;
        let proxy = Proxy::start(&setting::real()).await;
        let kubeconfig = setting.through(setting::real(), "one", proxy.address).await;
        let operator = Operator::start(&kubeconfig, "one", &LEADER[1..]);
        dealt_with(&setting, "before", "one").await;
        proxy.cut();
        operator.wrote("watch failed, retrying", MOMENT);
        proxy.mend();
        dealt_with(&setting, "after", "one").await;
        drop(operator);
        setting.remove().await;
    });
}

/// Figures for whoever runs the tests with `--nocapture`.
#[expect(clippy::print_stdout, reason = "figures are for people")]
fn say(text: &str) {
    println!("{text}");
}
