//! The loop of the screens: it alone owns the terminal and the model. It waits for keys and for what its host sends, and
//! draws when something has changed, at most thirty times a second; for keys at once.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ralphloop_core::event::StopCause;
use ralphloop_core::units::Timestamp;
use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyEventKind, MouseButton, MouseEventKind};

use crate::keys::Press;
use crate::mailbox::Mailbox;
use crate::port::Mouse;
use crate::signals::Signals;
use crate::terminal::Terminal;

/// Between two frames, if no key was pressed.
const FRAME: Duration = Duration::from_millis(33);
/// So long the host's messages are taken in before a key is looked at again.
const BATCH: Duration = Duration::from_millis(8);
/// How often times on the screen move.
const TICK: Duration = Duration::from_secs(1);

/// Now, for the model.
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// How the terminal is used.
#[derive(Debug, Clone, Copy)]
pub struct Use {
    /// The mouse selects, scrolls and turns tabs; the terminal's own selection then needs Shift.
    pub mouse: bool,
}

/// The size of the terminal, in columns and rows.
pub fn size() -> (u16, u16) {
    ratatui::crossterm::terminal::size().unwrap_or((80, 24))
}

/// What every screen is told of the terminal and the time.
#[derive(Debug)]
pub enum Input {
    /// Time goes on.
    Tick(Timestamp),
    /// The terminal has this size now.
    Resize(u16, u16),
    /// A key.
    Key(Press),
    /// Text was pasted.
    Paste(String),
    /// The mouse.
    Mouse(Mouse),
    /// A signal came that ends the program.
    Signal(StopCause),
}

/// What a screen asks of the loop itself; all else goes to its host.
#[derive(Debug)]
pub enum OfLoop<L> {
    /// Close the screen.
    Leave(L),
    /// Stop the program until the shell goes on with it.
    Suspend,
    /// Put a text into the clipboard.
    Copy(String),
}

/// A screen: a pure model of what is seen.
pub trait Screen {
    /// What it is told, by the loop and by its host.
    type Msg: From<Input>;
    /// What it asks for.
    type Request;
    /// How it is left.
    type Left;

    /// Takes a message in, and answers with what is to be done about it.
    fn update(&mut self, msg: Self::Msg) -> Vec<Self::Request>;
    /// Makes ready what the next frame shows.
    fn settle(&mut self) -> Vec<Self::Request>;
    /// Draws it.
    fn draw(&self, frame: &mut Frame<'_>);
    /// Whether a request is for the loop; if not, it is handed back.
    ///
    /// # Errors
    /// The request is for the host.
    fn of_loop(request: Self::Request) -> Result<OfLoop<Self::Left>, Self::Request>;
}

/// The terminal, taken for one screen after the other until this is dropped.
#[derive(Debug)]
pub struct Session {
    terminal: Terminal,
    signals: Signals,
}

impl Session {
    /// Takes the terminal.
    ///
    /// # Errors
    /// It cannot be used.
    pub fn enter(using: Use) -> io::Result<Self> {
        Self::with(Signals::catch()?, using)
    }

    /// Takes the terminal, after the signals.
    ///
    /// # Errors
    /// It cannot be used.
    pub fn with(mut signals: Signals, using: Use) -> io::Result<Self> {
        let terminal = Terminal::enter(using.mouse)?;
        wait(Duration::ZERO, &[])?;
        // The first time it is asked it begins to listen to sizes.
        event::poll(Duration::ZERO)?;
        signals.tell_of_sizes()?;
        Ok(Self { terminal, signals })
    }

    /// Shows a screen until it is left. `ask` hands requests to the host and must not wait for what they come to.
    ///
    /// # Errors
    /// The terminal cannot be used, or is gone.
    pub fn show<S: Screen>(
        &mut self,
        screen: &mut S,
        host: &Mailbox<S::Msg>,
        mut ask: impl FnMut(S::Request),
    ) -> io::Result<S::Left> {
        let mut drawn: Option<Instant> = None;
        let mut ticked = Instant::now();
        let mut changed = true;
        let mut pressed = false;
        wait(Duration::ZERO, &[])?;
        loop {
            let mut requests = Vec::new();
            self.signals.heard();
            if let Some(cause) = self.signals.ending() {
                requests.extend(screen.update(Input::Signal(cause).into()));
                changed = true;
            }
            let suspended = self.signals.suspended();
            if self.signals.continued() {
                self.terminal.again()?;
                changed = true;
            }
            if ticked.elapsed() >= TICK {
                ticked = Instant::now();
                requests.extend(screen.update(Input::Tick(now()).into()));
                changed = true;
            }
            // All that was typed, so that a held key is drawn once.
            while event::poll(Duration::ZERO)? {
                if let Some(input) = input(&event::read()?) {
                    requests.extend(screen.update(Input::Tick(now()).into()));
                    requests.extend(screen.update(input.into()));
                    (changed, pressed) = (true, true);
                }
            }
            changed |= take_in(screen, host, &mut requests);
            let due = drawn.is_none_or(|at| at.elapsed() >= FRAME);
            if changed && (due || pressed) {
                requests.extend(screen.settle());
                self.terminal.draw(|frame| screen.draw(frame))?;
                (changed, pressed, drawn) = (false, false, Some(Instant::now()));
            }
            if suspended {
                self.terminal.suspend()?;
                changed = true;
            }
            for request in requests {
                match S::of_loop(request) {
                    Ok(OfLoop::Leave(left)) => return Ok(left),
                    Ok(OfLoop::Suspend) => {
                        self.terminal.suspend()?;
                        changed = true;
                    }
                    Ok(OfLoop::Copy(text)) => Terminal::copy(&text)?,
                    Err(request) => ask(request),
                }
            }
            // With a frame to come, what the host tells is looked at with it.
            match drawn.filter(|_| changed) {
                Some(at) => wait(FRAME.saturating_sub(at.elapsed()), &[self.signals.as_fd()])?,
                None => wait(TICK.saturating_sub(ticked.elapsed()), &[self.signals.as_fd(), host.as_fd()])?,
            }
        }
    }
}

/// Waits until something is typed or can be read from the others; and says so if the terminal is gone: reading on from one
/// that is never comes to an end.
fn wait(longest: Duration, others: &[BorrowedFd<'_>]) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let stdin = io::stdin();
    let mut fds = vec![PollFd::new(&stdin, PollFlags::IN)];
    fds.extend(others.iter().map(|other| PollFd::from_borrowed_fd(*other, PollFlags::IN)));
    let timeout = Timespec::try_from(longest).map_err(io::Error::other)?;
    match poll(&mut fds, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let gone = fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL);
    if gone { Err(io::Error::new(io::ErrorKind::BrokenPipe, "the terminal is gone")) } else { Ok(()) }
}

/// Takes in what the host has sent, as much as fits into a moment.
fn take_in<S: Screen>(screen: &mut S, host: &Mailbox<S::Msg>, requests: &mut Vec<S::Request>) -> bool {
    let began = Instant::now();
    let mut any = false;
    while began.elapsed() < BATCH
        && let Some(msg) = host.take()
    {
        requests.extend(screen.update(msg));
        any = true;
    }
    any
}

fn input(event: &Event) -> Option<Input> {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => Some(Input::Key(Press::of(*key))),
        Event::Paste(text) => Some(Input::Paste(text.clone())),
        Event::Resize(columns, rows) => Some(Input::Resize(*columns, *rows)),
        Event::Mouse(mouse) => {
            let (x, y) = (mouse.column, mouse.row);
            match mouse.kind {
                MouseEventKind::Down(MouseButton::Left) => Some(Input::Mouse(Mouse::Click { x, y })),
                MouseEventKind::ScrollUp => Some(Input::Mouse(Mouse::Wheel { x, y, by: -1 })),
                MouseEventKind::ScrollDown => Some(Input::Mouse(Mouse::Wheel { x, y, by: 1 })),
                _ => None,
            }
        }
        Event::Key(_) | Event::FocusGained | Event::FocusLost => None,
    }
}
