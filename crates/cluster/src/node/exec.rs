//! `exec` and `attach` on a simulated node: a client's session enters, what it hears and an exit code leave.
//!
//! No program runs. What the objects of the API decide by themselves is answered: variables, mounted files, names,
//! times ([`program`]). Everything else is said not to be known, with the exit code of a command that was not found:
//! to say that the program is missing would be a guess about an image that nobody has looked into.

mod environment;
mod files;
mod program;
mod shell;
mod terminal;
mod world;

use std::{fmt, future::Future, pin::Pin, time::Duration};

use windlass::{
    Clock,
    clock::TokioClock,
    jiff::Timestamp,
    k8s_openapi::api::core::v1::{ContainerStatus, Node, Pod},
    kube::{
        Api, Client, ResourceExt,
        core::{ApiResource, DynamicObject},
        runtime::wait::await_condition,
    },
    serde_json,
};
use windlass_apiserver::containers::{Containers, Outcome, Session, Stream};

use self::{
    program::{Plan, Step},
    terminal::{Console, Input},
    world::World,
};
use super::health;

/// The code of a command that was not found, and of what this node does not understand.
const NOT_FOUND: i32 = 127;
/// The code of what was interrupted from the keyboard.
const INTERRUPTED: i32 = 130;
/// The code of what was killed, as everything in a container is when the container ends.
const KILLED: i32 = 137;

/// The containers of the simulated nodes.
#[derive(Clone)]
pub(crate) struct Simulated {
    client: Client,
    clock: TokioClock,
}

impl fmt::Debug for Simulated {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Simulated").finish_non_exhaustive()
    }
}

impl Containers for Simulated {
    fn run(&self, session: Session) -> Pin<Box<dyn Future<Output = Outcome> + Send>> {
        let node = self.clone();
        Box::pin(async move {
            match Box::pin(node.enter(session)).await {
                Ok(code) => Outcome::Exited(code),
                Err(error) => Outcome::Failed(error.to_string()),
            }
        })
    }
}

/// Why a container cannot be entered.
#[derive(Debug, thiserror::Error)]
enum Error {
    /// The server and this node do not mean the same by a Pod.
    #[error("failed to read the pod: {0}")]
    Pod(#[source] serde_json::Error),
    /// The Pod names a container that it does not have.
    #[error("failed to find the container {0}")]
    Container(String),
    /// The node plays dead.
    #[error("failed to reach the node {0}: it is told to be down by its annotation windlass.dev/simulate")]
    Down(String),
}

impl Simulated {
    /// What runs on the nodes of the cluster that `client` leads to.
    pub(crate) fn new(client: Client, clock: TokioClock) -> Self {
        Self { client, clock }
    }

    async fn enter(&self, session: Session) -> Result<i32, Error> {
        let pod: Pod = windlass::from_value(&session.pod).map_err(Error::Pod)?;
        let name = session.container;
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default();
        let found = Api::<Node>::all(self.client.clone()).get_opt(&node).await.ok().flatten();
        if found.as_ref().is_some_and(health::is_down) {
            return Err(Error::Down(node));
        }
        let ended = self.end_of(&pod, &name);
        let mut console = Console::new(session.output, session.stdin, session.tty);
        let Some(command) = session.command else {
            let note = "windlass: attached, but this container is simulated and prints nothing: this waits for its end";
            console.note(note).await;
            tokio::select! {
                biased;
                () = ended => {}
                () = console.ignore() => {}
            }
            return Ok(0);
        };
        let world = World::gather(&self.client, &pod, &name, found).await;
        let world = world.ok_or(Error::Container(name))?;
        tokio::select! {
            biased;
            code = self.execute(&command, &world, &mut console) => Ok(code),
            () = ended => Ok(KILLED),
        }
    }

    /// Resolves when the container does not run any more, or is not the same one.
    fn end_of(&self, pod: &Pod, container: &str) -> impl Future<Output = ()> + use<> {
        let (namespace, kind) = (pod.namespace().unwrap_or_default(), ApiResource::erase::<Pod>(&()));
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), &namespace, &kind);
        let (pod, container) = (pod.clone(), container.to_owned());
        async move {
            let began = started(&pod, &container);
            let is_other = |now: Option<&DynamicObject>| {
                let now = now.filter(|now| now.uid() == pod.uid()).and_then(|now| {
                    // Read as everybody reads Pods: a watch of typed ones would be all that code, three times more.
                    serde_json::to_value(now).and_then(|now| windlass::from_value::<Pod>(&now)).ok()
                });
                now.is_none_or(|now| started(&now, &container) != began)
            };
            if await_condition(api, &pod.name_any(), is_other).await.is_err() {
                // Whoever cannot be asked about its end is left to the client.
                std::future::pending::<()>().await;
            }
        }
    }

    async fn execute(&self, command: &[String], world: &World, console: &mut Console) -> i32 {
        for note in &world.notes {
            console.note(note).await;
        }
        match program::plan(command, world) {
            Some(plan) => Box::pin(self.follow(plan, world, console)).await,
            None => not_understood(&command.join(" "), console).await,
        }
    }

    /// Does what a plan says, as far as nobody interrupts it.
    async fn follow(&self, plan: Plan, world: &World, console: &mut Console) -> i32 {
        for step in plan.steps {
            match step {
                Step::Say(stream, bytes) => console.say(stream, &bytes).await,
                Step::Date(format) => {
                    let date = self.clock.now().strftime(&format).to_string();
                    console.say(Stream::Stdout, format!("{date}\n").as_bytes()).await;
                }
                Step::Wait(time) => {
                    let over = tokio::time::sleep(time.unwrap_or(Duration::MAX));
                    tokio::select! {
                        biased;
                        () = console.interrupted() => return INTERRUPTED,
                        () = over => {}
                    }
                }
                Step::Copy => loop {
                    match console.read().await {
                        Input::Line(line) => console.say(Stream::Stdout, &line).await,
                        Input::End => break,
                        Input::Interrupt => return INTERRUPTED,
                    }
                },
                Step::Shell => return self.shell(world, console).await,
            }
        }
        plan.code
    }

    /// A shell that reads its commands: each line is a script of its own.
    async fn shell(&self, world: &World, console: &mut Console) -> i32 {
        if console.is_terminal() {
            console.note(&format!("windlass: {}", program::ABOUT)).await;
        }
        let mut code = 0;
        loop {
            if console.is_terminal() {
                console.say(Stream::Stdout, b"$ ").await;
            }
            let line = match console.read().await {
                Input::Line(line) => line,
                Input::End => return code,
                Input::Interrupt => continue,
            };
            let text = String::from_utf8_lossy(&line);
            match program::script(&text, world, code) {
                Some(plan) => {
                    let exits = plan.exits;
                    code = Box::pin(self.follow(plan, world, console)).await;
                    if exits {
                        return code;
                    }
                }
                None => code = not_understood(text.trim(), console).await,
            }
        }
    }
}

async fn not_understood(command: &str, console: &Console) -> i32 {
    let note = format!("windlass: not run: {command}: {}", program::ABOUT);
    console.note(&note).await;
    NOT_FOUND
}

fn statuses(pod: &Pod) -> impl Iterator<Item = &ContainerStatus> {
    let status = pod.status.as_ref();
    let lists = status.into_iter().flat_map(|status| {
        [&status.container_statuses, &status.init_container_statuses, &status.ephemeral_container_statuses]
    });
    lists.flatten().flatten()
}

/// When a container that runs was started.
fn started(pod: &Pod, container: &str) -> Option<Timestamp> {
    let status = statuses(pod).find(|status| status.name == container)?;
    Some(status.state.as_ref()?.running.as_ref()?.started_at.as_ref()?.0)
}
