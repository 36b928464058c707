//! What the sandbox adds to the start of a program.

use std::time::{Duration, Instant};

use ralphloop_engine::process::{Call, Spawner, SupervisorProgram};
use ralphloop_engine::sandbox::{Level, Sandbox, Terms};

use crate::table::{Table, median, ms};
use crate::world::binary;

const ROUNDS: usize = 60;

pub(crate) fn measure(table: &mut Table) {
    let spawner = Spawner::new(SupervisorProgram { program: binary(), args: vec!["__supervise".into()] });
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (state, top, temporary) = (root.join("state"), root.join("work"), root.join("tmp"));
        for made in [&state, &top, &temporary] {
            std::fs::create_dir(made).unwrap();
        }
        for level in [Level::Workspace, Level::Strict] {
            let sandbox = match Sandbox::open(level, Terms::default(), &state, &spawner).await {
                Ok(sandbox) => sandbox,
                Err(error) => {
                    println!("not measured: {error}");
                    return;
                }
            };
            let (mut plain, mut added) = (Vec::new(), Vec::new());
            for _ in 0..ROUNDS {
                let call = || Call::shell("true", &top).timeout(Duration::from_mins(1));
                let began = Instant::now();
                assert!(spawner.run(call()).await.unwrap().success());
                let open = ms(began.elapsed());
                let began = Instant::now();
                assert!(spawner.run(sandbox.confine_to(call(), &top, &temporary)).await.unwrap().success());
                plain.push(open);
                added.push(ms(began.elapsed()) - open);
            }
            table.note("a start without a sandbox", median(plain), "ms");
            let what = format!("the sandbox `{}` adds to a start", level.as_str());
            table.at_most(&what, median(added), 15.0, "ms");
        }
    });
}
