//! What a reviewer says of proven work: advice in a strict form, never proof.
//!
//! The last line of its final message that is not blank decides. It is `REVIEW: APPROVED`, or `REVIEW: CHANGES` after one or
//! more lines `FINDING: one sentence`. Each stands on a line of its own, outside of code fences; Markdown emphasis and the
//! marks of a list around it do not matter, letter case neither. Whatever else it says is unclear, and so is an approval
//! beside findings, or a wish for changes without any.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::evidence::{AgentEnd, Usage};

/// How many findings of one review count; more are left out.
const FINDINGS: usize = 20;
/// How much of a finding counts, in bytes.
const FINDING: usize = 600;

/// What a reviewer thinks of the work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "opinion", rename_all = "snake_case")]
pub enum Opinion {
    /// It may land.
    Approves,
    /// These should be mended first.
    Objects {
        /// A sentence each; at least one.
        findings: Vec<String>,
    },
    /// It is in no form of an opinion. That is no objection.
    Unclear {
        /// The last line of what it said; may be empty.
        said: String,
    },
}

/// What one call of a reviewer came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewReport {
    /// How the call ended.
    pub end: AgentEnd,
    /// What it thinks, if it ended by itself.
    pub opinion: Opinion,
    /// What it used.
    pub usage: Usage,
    /// How long it ran.
    pub took: Duration,
    /// The model that worked, as the client names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The tree of the attempt is another one than before. A reviewer has nothing to write in it.
    #[serde(default)]
    pub touched: bool,
}

/// How the work of a story that lands was reviewed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reviewed {
    /// A reviewer approved it as it lands.
    Approved {
        /// Who.
        by: String,
    },
    /// It was sent back as often as is allowed, mended and proven again, and not looked at another time.
    Mended {
        /// Who sent it back.
        by: String,
        /// How often.
        times: u32,
    },
    /// Nobody's opinion counts for it.
    Not {
        /// Why.
        why: String,
    },
}

/// In a few words, for trailers and people.
impl std::fmt::Display for Reviewed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Approved { by } => write!(f, "approved by {by}"),
            Self::Mended { by, times: 1 } => write!(f, "sent back once by {by}, and not looked at again"),
            Self::Mended { by, times } => write!(f, "sent back {times} times by {by}, and not looked at again"),
            Self::Not { why } => write!(f, "none: {why}"),
        }
    }
}

/// What a reviewer's final message says.
pub fn opinion(message: &str) -> Opinion {
    let mut findings = Vec::new();
    let mut last = "";
    let mut fence: Option<&str> = None;
    for line in message.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let mark = ["```", "~~~"].into_iter().find(|mark| line.starts_with(mark));
        match (fence, mark) {
            (Some(open), Some(mark)) if open == mark => fence = None,
            (None, Some(mark)) => fence = Some(mark),
            (None, None) => {
                if let Some(finding) = after(line, "finding:").filter(|finding| !finding.is_empty()) {
                    findings.push(finding[..finding.floor_char_boundary(FINDING)].to_owned());
                }
            }
            _ => {}
        }
        last = line;
    }
    let verdict = if fence.is_some() || last.starts_with("```") { None } else { after(last, "review:") };
    let is = |word: &str| verdict.is_some_and(|said| said.trim_end_matches('.').eq_ignore_ascii_case(word));
    match (is("approved"), is("changes"), findings.is_empty()) {
        (true, _, true) => Opinion::Approves,
        (_, true, false) => {
            findings.truncate(FINDINGS);
            Opinion::Objects { findings }
        }
        _ => Opinion::Unclear { said: last[..last.floor_char_boundary(FINDING)].to_owned() },
    }
}

/// What follows `lead`, without the marks around a line.
fn after<'t>(line: &'t str, lead: &str) -> Option<&'t str> {
    let bare = line.trim_start_matches(['-', '*', '_', ' ']).trim_end_matches(['*', '_', ' ']);
    let head = bare.get(..lead.len())?;
    let rest = head.eq_ignore_ascii_case(lead).then(|| &bare[lead.len()..])?;
    Some(rest.trim_start_matches(['*', '_', ' ']).trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objects(findings: &[&str]) -> Opinion {
        Opinion::Objects { findings: findings.iter().map(|finding| (*finding).to_owned()).collect() }
    }

    #[test]
    fn an_approval_and_a_wish_for_changes_are_read_from_the_last_line() {
        for text in ["REVIEW: APPROVED", "All is well.\n\n**REVIEW: APPROVED**\n\n", "- review: approved."] {
            assert_eq!(opinion(text), Opinion::Approves, "{text:?}");
        }
        let text = "I looked at it.\n- FINDING: src/a.rs loses the last line.\nFINDING: no test.\nREVIEW: CHANGES";
        assert_eq!(opinion(text), objects(&["src/a.rs loses the last line.", "no test."]));
    }

    #[test]
    fn whatever_is_in_no_form_of_an_opinion_is_unclear_and_no_objection() {
        for text in [
            "",
            "Looks good to me.",
            "REVIEW: APPROVED\nBut look at src/a.rs.",
            "REVIEW: CHANGES",
            "FINDING: it is wrong.\nREVIEW: APPROVED",
            "FINDING:\nREVIEW: CHANGES",
            "```\nFINDING: quoted\n```\nREVIEW: CHANGES",
            "```\nREVIEW: APPROVED\n```",
            "```\nREVIEW: APPROVED",
            "The line REVIEW: APPROVED",
            "REVIEW: APPROVED with remarks",
            "REVIEW: CHANGES REQUESTED",
        ] {
            assert!(matches!(opinion(text), Opinion::Unclear { .. }), "{text:?}: {:?}", opinion(text));
        }
    }

    #[test]
    fn a_flood_of_findings_is_bounded_and_never_cut_inside_a_character() {
        let long = "ä".repeat(FINDING);
        let text = format!("{}REVIEW: CHANGES", format!("FINDING: {long}\n").repeat(FINDINGS + 5));
        let Opinion::Objects { findings } = opinion(&text) else { panic!() };
        assert_eq!(findings.len(), FINDINGS);
        assert!(findings.iter().all(|finding| finding.len() <= FINDING));
    }
}
