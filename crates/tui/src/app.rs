//! The loop of the screen: it alone owns the terminal and the model. It waits for keys, takes in what its host sends,
//! and draws when something has changed, at most thirty times a second.

use std::io;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ralphloop_core::units::Timestamp;
use ratatui::crossterm::event::{self, Event, KeyEventKind, MouseButton, MouseEventKind};

use crate::keys::Press;
use crate::model::Model;
use crate::port::{Leave, Mouse, Msg, Request};
use crate::signals::Signals;
use crate::terminal::Terminal;

/// Between two frames, if no key was pressed.
const FRAME: Duration = Duration::from_millis(33);
/// The longest wait for a key before the host's messages are looked at.
const WAIT: Duration = Duration::from_millis(50);
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
#[derive(Debug)]
pub struct Use {
    /// The mouse selects, scrolls and turns tabs; the terminal's own selection then needs Shift.
    pub mouse: bool,
    /// What is sent to this process. Taken over by who shows the screen, so that nothing is lost before it is there.
    pub signals: Signals,
}

/// The size of the terminal, in columns and rows.
pub fn size() -> (u16, u16) {
    ratatui::crossterm::terminal::size().unwrap_or((80, 24))
}

/// Shows a model until it is left. `ask` hands requests to the host and must not wait for what they come to.
///
/// # Errors
/// The terminal cannot be used, or is gone.
pub fn show(model: &mut Model, host: &Receiver<Msg>, using: Use, mut ask: impl FnMut(Request)) -> io::Result<Leave> {
    let Use { mouse, signals } = using;
    let mut terminal = Terminal::enter(mouse)?;
    let mut drawn: Option<Instant> = None;
    let mut ticked = Instant::now();
    let mut changed = true;
    let mut pressed = false;
    loop {
        let mut requests = Vec::new();
        if let Some(cause) = signals.ending() {
            requests.extend(model.update(Msg::Signal(cause)));
            changed = true;
        }
        if signals.suspended() {
            requests.push(Request::Suspend);
        }
        if signals.continued() {
            terminal.again()?;
            changed = true;
        }
        if ticked.elapsed() >= TICK {
            ticked = Instant::now();
            requests.extend(model.update(Msg::Tick(now())));
            changed = true;
        }
        is_there(Duration::ZERO)?;
        // All that was typed, so that a held key is drawn once.
        while event::poll(Duration::ZERO)? {
            if let Some(msg) = message(&event::read()?) {
                requests.extend(model.update(Msg::Tick(now())));
                requests.extend(model.update(msg));
                (changed, pressed) = (true, true);
            }
        }
        changed |= take_in(model, host, &mut requests);
        let due = drawn.is_none_or(|at| at.elapsed() >= FRAME);
        if changed && (due || pressed) {
            requests.extend(model.settle());
            terminal.draw(|frame| model.draw(frame))?;
            (changed, pressed, drawn) = (false, false, Some(Instant::now()));
        }
        for request in requests {
            match request {
                Request::Leave(leave) => return Ok(leave),
                Request::Suspend => {
                    terminal.suspend()?;
                    changed = true;
                }
                Request::Copy(text) => Terminal::copy(&text)?,
                other => ask(other),
            }
        }
        let wait = if changed { FRAME.saturating_sub(drawn.map_or(FRAME, |at| at.elapsed())) } else { WAIT };
        is_there(wait)?;
    }
}

/// Waits until something is typed, and says so if the terminal is gone: reading on from one that is never comes to an end.
fn is_there(wait: Duration) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let stdin = io::stdin();
    let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
    let timeout = Timespec::try_from(wait).map_err(io::Error::other)?;
    match poll(&mut fds, Some(&timeout)) {
        // A signal, such as that of another size.
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let gone = fds.iter().any(|fd| fd.revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL));
    if gone { Err(io::Error::new(io::ErrorKind::BrokenPipe, "the terminal is gone")) } else { Ok(()) }
}

/// Takes in what the host has sent, as much as fits into a moment.
fn take_in(model: &mut Model, host: &Receiver<Msg>, requests: &mut Vec<Request>) -> bool {
    let began = Instant::now();
    let mut any = false;
    while began.elapsed() < BATCH {
        match host.try_recv() {
            Ok(msg) => {
                requests.extend(model.update(msg));
                any = true;
            }
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
        }
    }
    any
}

fn message(event: &Event) -> Option<Msg> {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => Some(Msg::Key(Press::of(*key))),
        Event::Paste(text) => Some(Msg::Paste(text.clone())),
        Event::Resize(columns, rows) => Some(Msg::Resize(*columns, *rows)),
        Event::Mouse(mouse) => {
            let (x, y) = (mouse.column, mouse.row);
            match mouse.kind {
                MouseEventKind::Down(MouseButton::Left) => Some(Msg::Mouse(Mouse::Click { x, y })),
                MouseEventKind::ScrollUp => Some(Msg::Mouse(Mouse::Wheel { x, y, by: -1 })),
                MouseEventKind::ScrollDown => Some(Msg::Mouse(Mouse::Wheel { x, y, by: 1 })),
                _ => None,
            }
        }
        Event::Key(_) | Event::FocusGained | Event::FocusLost => None,
    }
}
