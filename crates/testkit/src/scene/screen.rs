//! The binary on a terminal of its own: what is seen on it, and keys.

use std::io::{Read as _, Write as _};
use std::num::NonZeroU16;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use super::{Scene, find_program};
use crate::scene::eventually;

/// The size of the terminal, in columns and rows.
const SIZE: (u16, u16) = (120, 40);

/// The binary on a terminal. Dropped while running, the terminal goes away under it.
pub struct OnScreen {
    child: Child,
    keys: Option<ChildStdin>,
    seen: Arc<Mutex<vt100::Parser>>,
    reader: Option<JoinHandle<()>>,
}

impl Scene {
    /// Starts the binary on a terminal of 120 columns and 40 rows.
    ///
    /// # Panics
    /// If `script` of util-linux is missing, or does not start.
    pub fn on_screen(&self, arguments: &str) -> OnScreen {
        // `script` makes the pseudo-terminal; its size is set from inside.
        let tool = |name: &str| find_program(name).unwrap_or_else(|| panic!("{name} is needed")).display().to_string();
        let (columns, rows) = SIZE;
        let stty = tool("stty");
        let program = format!("{stty} cols {columns} rows {rows} && exec '{}' {arguments}", self.binary.display());
        let mut command = self.command(tool("script"));
        command.args(["-qec", &program, "/dev/null"]).env("TERM", "xterm-256color").env("SHELL", "/bin/sh");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("script starts");
        let mut output = child.stdout.take().expect("it is piped");
        let cells = |number: u16| NonZeroU16::new(number).expect("a terminal has cells");
        let seen = Arc::new(Mutex::new(vt100::Parser::new(cells(rows), cells(columns), 0)));
        let parser = Arc::clone(&seen);
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 8192];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                parser.lock().unwrap_or_else(PoisonError::into_inner).process(bytes.get(..count).unwrap_or_default());
            }
        });
        OnScreen { keys: child.stdin.take(), child, seen, reader: Some(reader) }
    }
}

impl OnScreen {
    /// What is seen now, a line each.
    pub fn text(&self) -> String {
        let parser = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let rows = parser.screen().rows(0, SIZE.0);
        rows.map(|row| row.trim_end().to_owned() + "\n").collect()
    }

    /// Whether the program has switched to a screen of its own.
    pub fn is_taken(&self) -> bool {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).screen().alternate_screen()
    }

    /// Waits until something is seen.
    ///
    /// # Panics
    /// If that does not happen in time; with what is seen.
    #[track_caller]
    pub fn sees(&self, text: &str) {
        let shown = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            eventually(text, || self.text().contains(text));
        }));
        assert!(shown.is_ok(), "{text:?} is not on the screen:\n{}", self.text());
    }

    /// Types keys, as the bytes that a terminal sends for them.
    ///
    /// # Panics
    /// If nobody reads them any more.
    pub fn types(&mut self, keys: &str) {
        let into = self.keys.as_mut().expect("the keyboard is there until the end");
        into.write_all(keys.as_bytes()).and_then(|()| into.flush()).expect("the program reads what is typed");
    }

    /// Waits for the program's end: what is seen then, and how it ended.
    ///
    /// # Panics
    /// If it does not end in time.
    #[track_caller]
    pub fn ends(mut self) -> (String, Option<i32>) {
        let mut code = None;
        eventually("the program to end", || {
            code = self.child.try_wait().expect("it is a child").map(|status| status.code());
            code.is_some()
        });
        if let Some(reader) = self.reader.take() {
            reader.join().expect("what it wrote can be read");
        }
        assert!(!self.is_taken(), "the terminal was not given back");
        (self.text(), code.flatten())
    }
}

impl Drop for OnScreen {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
