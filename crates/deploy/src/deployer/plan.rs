//! What is to become of the definitions of a release, and whether their objects survive it.

use super::{Deployer, Step, Target, objects};
use crate::{definitions::During, error::Error, release::Release};

impl Deployer<'_> {
    /// The steps of all definitions. An error if stored objects would break, and nobody allows it; whoever goes back keeps
    /// a newer definition in place of that.
    pub(super) async fn steps(&self, release: &Release, back: bool) -> Result<Vec<Step>, Error> {
        let (mut steps, mut findings, mut count) = (Vec::new(), Vec::new(), 0);
        for definition in release.definitions() {
            let target = Target::of(definition);
            let live = target.found(&self.client).await?;
            let live = live.map(|live| serde_json::to_value(live).unwrap_or_default());
            let mut step = Step::new(live, definition)?;
            if !step.breaking.is_empty() && !self.options.allow_breaking {
                let stored = match &step.live {
                    Some(live) => objects::of(&self.client, live).await?.len(),
                    None => 0,
                };
                if stored == 0 {
                    (self.tell)(&format!("{}: no objects that the change could break", step.target));
                } else if back && step.works_with_live() {
                    let lost = step.breaking.join("; ");
                    (self.tell)(&format!(
                        "kept {} as it is: {lost} (--allow-breaking goes back)",
                        step.target
                    ));
                    step.keep();
                } else {
                    count += stored;
                    findings.extend(step.breaking.clone());
                }
            }
            steps.push(step);
        }
        if findings.is_empty() { Ok(steps) } else { Err(Error::Breaking { objects: count, findings }) }
    }

    /// Whether the definitions can be applied. Changes nothing.
    pub(super) async fn rehearse_definitions(&self, release: &Release, steps: &[Step]) -> Result<(), Error> {
        for step in steps {
            match &step.during {
                During::Applied(definition) => drop(self.applier(release).rehearse(definition).await?),
                // What is applied in the end is refused as long as objects are stored in another version; whose it is can be
                // looked at.
                During::Stored(_) => {
                    let found = step.target.found(&self.client).await?;
                    let owner = found.and_then(|found| crate::owners::stranger(&found, &release.name));
                    if let Some(owner) = owner.filter(|_| !self.options.force_conflicts) {
                        return Err(Error::Taken { what: step.target.to_string(), owner });
                    }
                }
                During::Kept => {}
            }
        }
        Ok(())
    }
}
