//! A Pod that asks other Pods something.

use k8s_openapi::api::core::v1::Pod;
use kube::api::LogParams;
use serde_json::json;

use crate::bed::{Bed, eventually};

/// Asks for a page without a pause, in several processes, and says what it got: a line `ok` for each ten right answers
/// of a process, a line `next` instead if they were the next version's, and a line `bad` for each other answer.
const STEADILY: &str = r#"
ask() {
  ok=0
  while true; do
    answer=$(printf 'GET / HTTP/1.0\r\nHost: it\r\n\r\n' | nc -w 10 "$1" "$2")
    case "$answer" in
      *"200 OK"*"Served by nginx"*) ok=$((ok + 1)) ;;
      *) echo "bad: $answer" ;;
    esac
    if [ "$ok" = 10 ]; then
      ok=0
      case "$answer" in *"next page"*) echo next ;; *) echo ok ;; esac
    fi
  done
}
trap 'exit 0' TERM
# Pods may be ready before the node's proxy knows them: the first answer opens the count.
until printf 'GET / HTTP/1.0\r\nHost: it\r\n\r\n' | nc -w 10 "$1" "$2" | grep -q '200 OK'; do sleep 0.1; done
for process in 1 2 3 4; do ask "$1" "$2" & done
wait
"#;

/// A Pod that runs a script.
pub(super) struct Visitor<'a> {
    bed: &'a Bed,
    name: &'static str,
}

impl<'a> Visitor<'a> {
    /// Lets a script run in a Pod, with arguments.
    pub(super) async fn send(bed: &'a Bed, name: &'static str, script: &str, arguments: &[&str]) -> Self {
        let mut command = vec!["sh", "-c", script, name];
        command.extend(arguments);
        let _: Pod = bed
            .create(json!({
                "metadata": {"name": name},
                "spec": {
                    "restartPolicy": "Never",
                    "terminationGracePeriodSeconds": 1,
                    "containers": [{"name": "visitor", "image": "busybox:1.37", "command": command}],
                },
            }))
            .await;
        Self { bed, name }
    }

    /// Sends someone who asks for a page again and again.
    pub(super) async fn steady(bed: &'a Bed, address: &str, port: &str) -> Self {
        Self::send(bed, "visitor", STEADILY, &[address, port]).await
    }

    /// What it has said by now.
    pub(super) async fn said(&self) -> Vec<String> {
        // No log before the container runs.
        let log = self.bed.api::<Pod>().logs(self.name, &LogParams::default()).await.unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }

    /// Waits for the last word of a script.
    pub(super) async fn ends_with(&self, word: &str) {
        eventually(&format!("{} ends with {word:?}", self.name), || async {
            self.said().await.last().filter(|last| *last == word).map(|_| ())
        })
        .await;
    }

    /// Waits until a word was said a few times more than by now.
    pub(super) async fn says(&self, word: &str, times: usize) {
        let count = |said: Vec<String>| said.iter().filter(|line| line.as_str() == word).count();
        let before = count(self.said().await);
        eventually(&format!("{} says {word:?} {times} times", self.name), || async {
            (count(self.said().await) >= before + times).then_some(())
        })
        .await;
    }
}
