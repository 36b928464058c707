//! Screens kept as text beside the tests: what a frame shows is compared with its file, or written to it with `UPDATE=1`.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::Path;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use unicode_width::UnicodeWidthStr as _;

/// A frame of so many columns and rows as text, without blanks at the ends of lines.
pub(crate) fn frame(size: (u16, u16), draw: impl FnOnce(&mut ratatui::Frame<'_>)) -> String {
    let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
    terminal.draw(draw).unwrap();
    let buffer = terminal.backend().buffer();
    let row = |y: u16| {
        let (mut text, mut x) = (String::new(), 0);
        while x < size.0 {
            let symbol = buffer[(x, y)].symbol();
            text.push_str(symbol);
            // The cells behind a wide character are its own.
            x += u16::try_from(symbol.width().max(1)).unwrap();
        }
        text.trim_end().to_owned() + "\n"
    };
    (0..size.1).map(row).collect()
}

/// Compares what is shown with the file of that name.
#[track_caller]
pub(crate) fn holds(name: &str, shown: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots").join(format!("{name}.txt"));
    if std::env::var_os("UPDATE").is_some_and(|value| value == "1") {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        return std::fs::write(path, shown).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == shown, "{name} has changed; `UPDATE=1 cargo test -p ralphloop-tui` keeps it so\n{shown}");
}
