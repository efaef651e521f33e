//! The life of a named cluster, as its files tell it.

use super::*;

fn place(folder: &Path) -> ClusterDirectory {
    ClusterDirectory { name: "default".into(), folder: folder.join("default") }
}

fn facts(log: Option<PathBuf>) -> Facts {
    Facts {
        pid: 7,
        url: "https://127.0.0.1:6443".into(),
        port: 6443,
        kubeconfig: "kubeconfig".into(),
        data_dir: None,
        log,
        page: None,
        nodes: 1,
        fsync: true,
        started: Timestamp::UNIX_EPOCH,
        server: Box::default(),
        version: "0.1.0".into(),
    }
}

#[test]
fn a_cluster_runs_as_long_as_its_lock_is_held() {
    let folder = tempfile::tempdir().unwrap();
    let place = place(folder.path());
    assert_eq!(place.state().unwrap(), State::Stopped);
    let held = place.take(false).unwrap();
    assert_eq!(place.state().unwrap(), State::Starting);
    held.ready(&facts(None)).unwrap();
    assert_eq!(place.state().unwrap(), State::Running(facts(None)));
    assert!(matches!(place.take(false), Err(Error::AlreadyRunning { pid: Some(7), .. })));
    drop(held);
    assert!(matches!(place.state().unwrap(), State::Dead(why) if why.contains("killed")));
    assert!(matches!(place.running(), Err(Error::NotRunning(_))));
}

#[test]
fn a_dead_cluster_says_what_its_log_says() {
    let folder = tempfile::tempdir().unwrap();
    let place = place(folder.path());
    let held = place.take(true).unwrap();
    held.ready(&facts(Some(place.log()))).unwrap();
    fs::write(place.log(), "cluster  x\nerror: failed to breathe\nhint: open a window\n").unwrap();
    drop(held);
    assert_eq!(place.state().unwrap(), State::Dead("failed to breathe".into()));
    assert_eq!(last_words(&place.log()), ("failed to breathe".into(), Some("open a window".into())));
}

#[test]
fn who_holds_the_lock_hears_that_it_is_to_stop() {
    let folder = tempfile::tempdir().unwrap();
    let place = place(folder.path());
    let held = place.take(false).unwrap();
    held.ready(&facts(None)).unwrap();
    assert!(matches!(place.stop(Duration::from_millis(1)), Err(Error::NotStopped { pid: Some(7), .. })));
    let (sender, heard) = std::sync::mpsc::channel();
    held.on_stop(move || sender.send(()).unwrap()).unwrap();
    let waiting = std::thread::spawn(move || {
        heard.recv().unwrap();
        held.ended().unwrap();
    });
    place.stop(Duration::from_secs(30)).unwrap();
    waiting.join().unwrap();
    assert!(!place.exists(), "nothing of a cluster in memory is left");
}

#[test]
fn a_cluster_whose_folder_is_removed_stops() {
    let folder = tempfile::tempdir().unwrap();
    let place = place(folder.path());
    let held = place.take(false).unwrap();
    let (sender, heard) = std::sync::mpsc::channel();
    held.on_stop(move || sender.send(()).unwrap()).unwrap();
    place.remove().unwrap();
    heard.recv_timeout(Duration::from_secs(30)).unwrap();
}

#[test]
fn what_a_stopped_cluster_has_kept_stays() {
    let folder = tempfile::tempdir().unwrap();
    let place = place(folder.path());
    let held = place.take(false).unwrap();
    fs::create_dir(place.data()).unwrap();
    held.ready(&facts(None)).unwrap();
    held.ended().unwrap();
    assert!(place.data().exists());
    assert_eq!(place.state().unwrap(), State::Stopped);
}
