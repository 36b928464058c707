//! A commit's signature by a key of the user's: over its tree, its parent and its message, so that it can be traced to its
//! attempt and its checks years later, without the journal.

use hmac::{Hmac, KeyInit as _, Mac as _};
use ralphloop_core::ids::CommitId;
use sha2::Sha256;

use super::{GitError, Repository};
use crate::notify::Secret;

/// The trailer that holds it.
pub(super) const SIGNATURE: &str = "Ralphloop-Signature";
const KIND: &str = "hmac-sha256=";

/// Signs commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seal(Secret);

/// What a commit's signature says of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sealed {
    /// It is as it was made.
    Fits,
    /// Its tree, its parent, its message or the key is another.
    Differs,
    /// It carries one, and without a key that says nothing.
    Unchecked,
    /// It carries none.
    None,
}

impl Seal {
    /// By that key.
    pub fn new(key: Secret) -> Self {
        Self(key)
    }

    pub(crate) fn key(&self) -> &Secret {
        &self.0
    }

    /// The message with its signature as the last trailer.
    pub(super) fn sign(&self, tree: &str, parent: &str, message: &str) -> String {
        let message = message.trim_end();
        let code = self.code(tree, parent, message).map(|mac| mac.finalize().into_bytes());
        let hex: String = code.iter().flatten().map(|byte| format!("{byte:02x}")).collect();
        format!("{message}\n{SIGNATURE}: {KIND}{hex}\n")
    }

    fn verify(&self, tree: &str, parent: &str, message: &str) -> Sealed {
        let Some((signed, code)) = signature(message) else { return Sealed::None };
        let Some(code) = code.lines().next().and_then(|line| line.trim().strip_prefix(KIND)) else {
            return Sealed::Differs;
        };
        let bytes: Option<Vec<u8>> = (0..code.len() / 2)
            .map(|at| code.get(2 * at..2 * at + 2).and_then(|byte| u8::from_str_radix(byte, 16).ok()))
            .collect();
        let mac = self.code(tree, parent, signed.trim_end());
        let fits = mac.zip(bytes).is_some_and(|(mac, bytes)| mac.verify_slice(&bytes).is_ok());
        if fits { Sealed::Fits } else { Sealed::Differs }
    }

    fn code(&self, tree: &str, parent: &str, message: &str) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.0.as_str().as_bytes()).ok()?;
        mac.update(format!("tree {tree}\nparent {parent}\n\n{message}").as_bytes());
        Some(mac)
    }
}

/// What a message says before its signature, and the signature with what follows it.
fn signature(message: &str) -> Option<(&str, &str)> {
    message.rsplit_once(&format!("\n{SIGNATURE}: "))
}

impl Repository {
    /// Whether a commit is as it was signed, by the key of `seal` if there is one.
    ///
    /// # Errors
    /// Git failed, or there is no such commit.
    pub async fn sealed(&self, commit: &CommitId, seal: Option<&Seal>) -> Result<Sealed, GitError> {
        let format = "--format=%T%x00%P%x00%B";
        let answer =
            self.read().args(["show", "--no-patch", "--no-show-signature", format, commit.as_str()]).run().await?;
        let text = String::from_utf8_lossy(&answer.stdout).into_owned();
        match text.splitn(3, '\0').collect::<Vec<_>>()[..] {
            [tree, parent, message] => Ok(match (signature(message), seal) {
                (None, _) => Sealed::None,
                (Some(_), None) => Sealed::Unchecked,
                (Some(_), Some(seal)) => seal.verify(tree, parent, message),
            }),
            _ => Err(answer.unexpected()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_holds_the_tree_the_parent_and_every_word() {
        let seal = Seal::new(Secret::new("a key of the user"));
        let message = seal.sign("t1", "p1", "feat(S1): on\n\nRalphloop-Run: r\n");
        assert!(message.contains("Ralphloop-Run: r\nRalphloop-Signature: hmac-sha256="), "{message}");
        assert_eq!(seal.verify("t1", "p1", &message), Sealed::Fits);
        assert_eq!(seal.verify("t1", "p1", &(message.clone() + "\n")), Sealed::Fits);
        assert_eq!(seal.verify("t2", "p1", &message), Sealed::Differs);
        assert_eq!(seal.verify("t1", "p2", &message), Sealed::Differs);
        assert_eq!(seal.verify("t1", "p1", &message.replace("on", "off")), Sealed::Differs);
        assert_eq!(Seal::new(Secret::new("another")).verify("t1", "p1", &message), Sealed::Differs);
        assert_eq!(seal.verify("t1", "p1", "feat: x\n"), Sealed::None);
    }
}
