//! What `check --fix` mends: faults whose only possible meaning is clear, by edits of the bytes at fault.
//!
//! A file that could be read before reads the same afterwards, or nothing is changed. A file that could not is mended
//! only where its characters leave no choice; what a person has to decide stays.

mod boxes;
mod json;

use ralphloop_core::plan::{Plan, Scheme};

use crate::document::Slot;
use crate::edit::{Edit, apply};
use crate::json::Flavour;
use crate::source::{SpecFiles, Strictness, document};
use crate::text::Text;

/// One thing that was mended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mend {
    /// Where it was, from 1.
    pub line: u32,
    /// What was done, in words.
    pub what: String,
    /// How.
    pub edit: Edit,
}

/// The main file, mended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mended {
    /// Its new content.
    pub bytes: Vec<u8>,
    /// What was done, in the order of the file; never empty.
    pub mends: Vec<Mend>,
}

/// Mends what can be mended safely; `None` if there is nothing of that kind.
pub fn mend(files: &SpecFiles) -> Option<Mended> {
    let text = Text::decode(&files.main.path, &files.main.bytes).ok()?;
    match files.scheme {
        Scheme::Prd if Flavour::of(&files.main.path) == Flavour::Strict => mend_json(files, &text),
        Scheme::GitHub => mend_json(files, &text),
        Scheme::Prd | Scheme::Beads | Scheme::Yaml => None,
        _ => alike(files, boxes::mends(&text)),
    }
}

fn mend_json(files: &SpecFiles, text: &Text<'_>) -> Option<Mended> {
    if json::is_valid(text) {
        return alike(files, flags(files, text));
    }
    let found = json::mends(text);
    let with = |mends: Vec<Mend>| mended(&files.main.bytes, mends);
    let all = with(found.all());
    // A comma between what were two stories would make one story with two titles: that is for a person to decide.
    match all {
        Some(all) if reads_as_json(files, &all.bytes) => Some(all),
        _ => with(found.without_commas()),
    }
}

fn reads_as_json(files: &SpecFiles, bytes: &[u8]) -> bool {
    Text::decode(&files.main.path, bytes).is_ok_and(|text| crate::json::parse(&text, Flavour::Strict).is_ok())
}

fn mended(bytes: &[u8], mends: Vec<Mend>) -> Option<Mended> {
    if mends.is_empty() {
        return None;
    }
    let edits: Vec<Edit> = mends.iter().map(|mend| mend.edit.clone()).collect();
    Some(Mended { bytes: apply(bytes, &edits).ok()?, mends })
}

/// The mends, if the file reads the same with them.
fn alike(files: &SpecFiles, mends: Vec<Mend>) -> Option<Mended> {
    let mended = mended(&files.main.bytes, mends)?;
    let plan = |bytes: &[u8]| -> Option<Plan> {
        let text = Text::decode(&files.main.path, bytes).ok()?;
        Some(document(files.scheme, &text, Strictness::Strict).ok()?.reading.plan)
    };
    (plan(&files.main.bytes)? == plan(&mended.bytes)?).then_some(mended)
}

/// Flags that are `"true"` or `"false"` in quotes.
fn flags(files: &SpecFiles, text: &Text<'_>) -> Vec<Mend> {
    let Ok(document) = document(files.scheme, text, Strictness::Strict) else { return Vec::new() };
    let own = document.marks.iter().flat_map(|story| std::iter::once(&story.own).chain(&story.tasks));
    let mut mends: Vec<Mend> = own
        .flat_map(|item| &item.marks)
        .filter(|mark| mark.slot == Slot::Flag)
        .filter_map(|mark| {
            let word = mark.now.strip_prefix('"')?.strip_suffix('"')?.to_lowercase();
            matches!(word.as_str(), "true" | "false").then(|| Mend {
                line: text.line(mark.offset - text.base),
                what: format!("the text {} became the value {word}", mark.now),
                edit: mark.replaced_by(&word),
            })
        })
        .collect();
    mends.sort_by_key(|mend| mend.edit.offset);
    mends
}
