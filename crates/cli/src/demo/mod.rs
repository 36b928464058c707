//! `ralphloop demo`: a small repository, a small change and a scripted agent, to see the whole loop at work.

mod agent;
mod project;

use std::path::{Path, PathBuf};

use ralphloop_engine::git::{Git, GitError};

use crate::error::CliError;

pub(crate) use agent::play;

/// The name of the work in the demo's repository.
pub(crate) const WORK: &str = "openspec:first-commands";

/// What a person sees before the run.
pub(crate) const BEFORE: &str = "\
The demo plays the whole loop: four stories, real git, real tests, and a scripted agent instead of a model.
";

/// What a person sees after the run, the folder left out.
pub(crate) const AFTER: &str = "\
What happened:
  1  passed at once: the agent's claim held, so the work became a commit
  2  had a bug: the gate `sh tests/run.sh` failed, the agent got its output and repaired the work in place
  3  was claimed twice without being so: the attempt was reverted, kept under a ref, and the next one passed
  4  was blocked by the agent with a reason: nobody was asked in the middle of the run, and nothing landed

Look around:
";

/// The commands worth trying in the demo's repository.
pub(crate) const TRY: &[(&str, &str)] = &[
    ("ralphloop status", "how the run ended"),
    ("ralphloop log", "what happened, oldest first"),
    ("ralphloop diff '3#1'", "the attempt that was reverted"),
    ("ralphloop show first-commands", "the stories and their boxes now"),
    ("git log --stat", "one commit a story, ticked boxes included"),
];

/// Makes the demo's repository in `folder`, or in a new temporary one, and returns where it is.
pub(crate) async fn prepare(folder: Option<&Path>, cwd: &Path, git: &Git) -> Result<PathBuf, CliError> {
    let root = match folder {
        Some(folder) => empty_folder(&cwd.join(folder))?,
        None => tempfile::Builder::new()
            .prefix("ralphloop-demo-")
            .tempdir()
            .map_err(|error| CliError::environment("could not make a temporary folder").cause(&error))?
            .keep(),
    };
    let repository = root.join("toolbox");
    let program = std::env::current_exe()
        .map_err(|error| CliError::environment("could not find out where ralphloop itself is").cause(&error))?;
    project::write(&repository, &program, &root.join("agent-notes"))
        .map_err(|error| CliError::environment(format!("could not write {}", repository.display())).cause(&error))?;
    make_repository(git, &repository).await.map_err(|error| {
        CliError::environment(format!("could not make a repository of {}", repository.display())).cause(&error)
    })?;
    Ok(repository)
}

fn empty_folder(folder: &Path) -> Result<PathBuf, CliError> {
    let fail =
        |error: &std::io::Error| CliError::usage(format!("could not use the folder {}", folder.display())).cause(error);
    std::fs::create_dir_all(folder).map_err(|error| fail(&error))?;
    let mut entries = std::fs::read_dir(folder).map_err(|error| fail(&error))?;
    if entries.next().is_some() {
        return Err(CliError::usage(format!("the folder {} is not empty", folder.display()))
            .hint("name a new folder, or none for a temporary one"));
    }
    Ok(folder.to_owned())
}

async fn make_repository(git: &Git, repository: &Path) -> Result<(), GitError> {
    for arguments in project::GIT {
        git.write(repository).args(*arguments).run().await?;
    }
    Ok(())
}
