//! `demo`: the whole loop in a folder of its own.

use std::fmt::Write as _;
use std::path::Path;

use ralphloop_engine::git::Git;

use super::launch::Launch;
use super::take_up::Wish;
use super::{repository, run};
use crate::arguments::{DemoArguments, ViewArguments};
use crate::config::{Layer, Settings};
use crate::demo;
use crate::error::CliError;
use crate::exit::Exit;
use crate::host::Host;
use crate::output::{self, HEAD, styled};

pub(super) fn demo(arguments: &DemoArguments, host: &Host) -> Result<Exit, CliError> {
    let git = Git::new(repository::spawner()?, Settings::default().command_timeout);
    let prepared = demo::prepare(arguments.folder.as_deref(), &host.cwd, &git);
    let repository = repository::runtime()?.block_on(prepared)?;
    output::talk(&format!("{}It plays in {}\n\n", demo::BEFORE, repository.display()));
    // The user's own settings and variables have no part in it.
    let host = Host { cwd: repository.clone(), environment: std::collections::BTreeMap::new() };
    let launch = Launch::new(Some(demo::WORK.to_owned()), Vec::new(), &Layer::default(), &host);
    let view = ViewArguments { tui: arguments.tui, headless: !arguments.tui, json: false };
    let exit = run::go(launch.prepare(Layer::default(), &host)?, Wish::Fresh, false, view, None, &host)?;
    if exit != Exit::FAILED {
        return Err(CliError::new(Exit::FAILED, "the demo did not go as it should: one story was to be blocked")
            .hint(format!("its folder is left for a look: {}", repository.display())));
    }
    output::data(&after(&repository))?;
    Ok(Exit::DONE)
}

fn after(repository: &Path) -> String {
    let mut text = format!("\n{}", demo::AFTER);
    let _ = writeln!(text, "  cd {}", repository.display());
    let width = demo::TRY.iter().map(|(command, _)| command.len()).max().unwrap_or(0);
    for (command, what) in demo::TRY {
        let _ = writeln!(text, "  {}  {what}", styled(HEAD, &format!("{command:width$}")));
    }
    let folder = repository.parent().unwrap_or(repository);
    let _ = writeln!(text, "\nThe folder stays until you remove it: rm -r {}", folder.display());
    text
}
