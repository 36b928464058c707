//! What a confined program finds, as data: made by the run, carried to the supervisor, entered by the program's process
//! before it begins.
use std::ffi::OsString;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// What a program can see, write and reach. Everything that is not named can be read and not written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Confinement {
    /// Parents before what is in them.
    pub(crate) placed: Vec<Placed>,
    pub(crate) network: Network,
}

/// What is found at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Placed {
    /// Absolute, links resolved.
    pub(crate) path: OsString,
    pub(crate) what: What,
}

/// What something is for a confined program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum What {
    /// A file or folder of the machine.
    From {
        /// Absolute, links resolved.
        source: OsString,
        writable: bool,
    },
    /// An empty folder that cannot be written; what is placed below it is in it.
    Empty {
        /// It can be looked into. Not so where nothing is below it: who tries is refused, and sees that.
        open: bool,
    },
}

/// Which network there is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Network {
    /// That of the machine.
    Machine,
    /// Its own, with nobody else in it.
    Own,
    /// Its own, with a door at each of these ports of its loopback, which is served from outside.
    Doors(Vec<u16>),
}

/// How a program comes to where it is confined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Way {
    /// It is not confined.
    Free,
    /// Its process goes in before it becomes the program.
    GoesIn(Confinement),
    /// What is started in its place puts it in, where our own program says when that is done.
    PutIn,
}

impl Way {
    /// For the way to the supervisor.
    pub(crate) fn encode(&self) -> Result<Vec<u8>, postcard::Error> {
        postcard::to_stdvec(self)
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        postcard::from_bytes(bytes).ok()
    }
}

impl Confinement {
    /// Leaves out what covers something that is gone by now; whether there was any.
    pub(super) fn forget_what_is_gone(&mut self) -> bool {
        let before = self.placed.len();
        self.placed.retain(|placed| !placed.covers_nothing());
        self.placed.len() < before
    }
}

impl Network {
    /// It is not the machine's.
    pub(crate) fn is_own(&self) -> bool {
        *self != Self::Machine
    }

    /// Where its doors are.
    pub(crate) fn doors(&self) -> &[u16] {
        match self {
            Self::Doors(ports) => ports,
            Self::Machine | Self::Own => &[],
        }
    }
}

impl Placed {
    pub(crate) fn path(&self) -> &Path {
        Path::new(&self.path)
    }

    /// It covers something that is gone: a socket that somebody has closed since. Nobody can put something there inside.
    pub(super) fn covers_nothing(&self) -> bool {
        let covers = matches!(&self.what, What::From { source, writable: false } if *source != self.path);
        covers && std::fs::symlink_metadata(self.path()).is_err()
    }
}
