//! The one owner of the terminal. What it switches on it switches off again, in the reverse order, in every way out:
//! when it is dropped, when the program panics, and while the program is suspended.

use std::io::{self, Stdout, Write as _};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture};
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen};
use ratatui::crossterm::{execute, terminal};

/// A clipboard takes no more than this from a terminal's sequence, in bytes of text.
const MOST_COPIED: usize = 74_000;

/// Whether anything is switched on. The one piece of state that a panic hook can see.
static ENTERED: AtomicBool = AtomicBool::new(false);
static HOOK: Once = Once::new();

/// The terminal, switched to the screen.
#[derive(Debug)]
pub(crate) struct Terminal {
    screen: ratatui::Terminal<CrosstermBackend<Stdout>>,
    mouse: bool,
}

impl Terminal {
    /// Switches to the screen.
    pub(crate) fn enter(mouse: bool) -> io::Result<Self> {
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |info| {
                leave();
                before(info);
            }));
        });
        switch_on(mouse)?;
        let screen = ratatui::Terminal::new(CrosstermBackend::new(io::stdout())).inspect_err(|_| leave())?;
        Ok(Self { screen, mouse })
    }

    /// Draws a frame.
    pub(crate) fn draw(&mut self, draw: impl FnOnce(&mut ratatui::Frame<'_>)) -> io::Result<()> {
        self.screen.draw(draw).map(drop)
    }

    /// Puts a text into the clipboard of whoever sits at the terminal, over ssh too.
    pub(crate) fn copy(text: &str) -> io::Result<()> {
        let end = text.char_indices().map(|(at, c)| at + c.len_utf8()).take_while(|end| *end <= MOST_COPIED).last();
        let kept = text.get(..end.unwrap_or(0)).unwrap_or_default();
        let mut out = io::stdout();
        write!(out, "\x1b]52;c;{}\x07", BASE64.encode(kept)).and_then(|()| out.flush())
    }

    /// Gives the terminal back, stops the program, and takes the terminal again once it goes on.
    pub(crate) fn suspend(&mut self) -> io::Result<()> {
        leave();
        // Not TSTP: that signal is noted by us instead of stopping anything.
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP)?;
        self.again()
    }

    /// Switches to the screen again, whatever was done to the terminal meanwhile.
    pub(crate) fn again(&mut self) -> io::Result<()> {
        leave();
        switch_on(self.mouse)?;
        self.screen.clear()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        leave();
    }
}

fn switch_on(mouse: bool) -> io::Result<()> {
    ENTERED.store(true, Ordering::SeqCst);
    let on = terminal::enable_raw_mode().and_then(|()| {
        execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste)?;
        if mouse { execute!(io::stdout(), EnableMouseCapture) } else { Ok(()) }
    });
    on.inspect_err(|_| leave())
}

/// Switches everything off. If the terminal is gone, nobody can see that it did not work.
fn leave() {
    if ENTERED.swap(false, Ordering::SeqCst) {
        drop(execute!(io::stdout(), DisableMouseCapture, DisableBracketedPaste, Show, LeaveAlternateScreen));
        drop(terminal::disable_raw_mode());
    }
}
