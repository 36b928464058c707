//! Room on the disk while a command runs: one that fails for want of it has said nothing of the tree.
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::bytes::Bytes;
use crate::files::{LEAST_ROOM, free_space};

/// How often is looked: what fills a disk may be gone again when the command ends, and nothing tells of it.
const LOOK: Duration = Duration::from_millis(500);

/// Watches the disks that a command writes to.
#[derive(Debug)]
pub(super) struct Room {
    places: Vec<PathBuf>,
    every: Interval,
    want: Option<String>,
}

impl Room {
    /// The disks of these folders; one that is not there has none.
    pub(super) fn of<'a>(places: impl IntoIterator<Item = &'a Path>) -> Self {
        let mut every = interval(LOOK);
        every.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { places: places.into_iter().map(Path::to_owned).collect(), every, want: None }
    }

    /// Waits until it is time to look.
    pub(super) async fn next_look(&mut self) {
        self.every.tick().await;
    }

    /// Looks, and remembers if there is too little.
    pub(super) fn look(&mut self) {
        if self.want.is_some() {
            return;
        }
        let scarce = |place: &PathBuf| {
            let free = free_space(place).ok().filter(|free| *free < LEAST_ROOM)?;
            let at = place.display();
            Some(format!("only {} were free on the disk where {at} is; make room, then go on", Bytes(free)))
        };
        self.want = self.places.iter().find_map(scarce);
    }

    /// What was wanting at any look.
    pub(super) fn want(self) -> Option<String> {
        self.want
    }
}
