//! Pictures of the screens of a demo run, for the README and the documents. `UPDATE=1 cargo test -p ralphloop pictures` makes them
//! anew; without it the same way through the screens is gone, and the pictures have to be there.

use std::path::Path;

use ralphloop_testkit::scene::{OnScreen, eventually};

use crate::world::scene;

fn keep(screen: &OnScreen, name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/pictures").join(format!("{name}.svg"));
    if std::env::var_os("UPDATE").is_some_and(|value| value == "1") {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, screen.picture()).unwrap();
    }
    assert!(path.is_file(), "{} is missing", path.display());
}

#[test]
fn pictures_of_a_demo_run() {
    let scene = scene();
    let mut screen = scene.on_screen("demo --tui --folder ../demo");
    screen.sees("The run has ended");
    keep(&screen, "end");
    // The story before the last had two attempts and a repair.
    screen.types("\x1b");
    eventually("the box to close", || !screen.text().contains("The run has ended:"));
    screen.types("h");
    screen.sees("names the comma");
    keep(&screen, "agent");
    screen.types("\t\t[");
    screen.sees("Attempt 1");
    keep(&screen, "checks");
    screen.types("\t");
    screen.sees("put back");
    keep(&screen, "attempts");
    screen.types("\t\t");
    screen.sees("The run has ended:");
    keep(&screen, "result");
    screen.types("q");
    screen.ends();
}
