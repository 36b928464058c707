//! Which formats a file or folder could have, where its place alone does not tell.

use std::path::Path;

use ralphloop_core::plan::Scheme;
use ralphloop_spec::{SpecFiles, SpecText};

use super::read;

/// Formats of a text with boxes, the likeliest first.
const TEXTS: &[Scheme] = &[
    Scheme::Markdown,
    Scheme::FixPlan,
    Scheme::OpenSpec,
    Scheme::SpecKit,
    Scheme::Kiro,
    Scheme::Flight,
    Scheme::Backlog,
];

/// The formats that can read a file of this name, the likeliest first; the only one that the name allows, even if it
/// cannot, so that it is said why.
pub(super) fn of_file(path: &Path) -> Vec<Scheme> {
    let extension = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    match extension.as_str() {
        "yaml" | "yml" => vec![Scheme::Yaml],
        "jsonl" => vec![Scheme::Beads],
        "json" if name.starts_with("prd") => vec![Scheme::Prd],
        "json" => {
            let readable = readable(path, &[Scheme::Prd, Scheme::GitHub]);
            if readable.is_empty() { vec![Scheme::Prd] } else { readable }
        }
        "jsonc" => vec![Scheme::Prd],
        _ => {
            let text = read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
            let shown = |scheme: &Scheme| shows_itself(*scheme, &text);
            readable(path, TEXTS).into_iter().filter(shown).collect()
        }
    }
}

/// Whether a text that a format can read looks like that format, and not only like any list of boxes.
fn shows_itself(scheme: Scheme, text: &str) -> bool {
    let lines = text.lines();
    let heading = |line: &str| Some(line.trim_start_matches('#')).filter(|rest| *rest != line).map(str::to_owned);
    let item = |line: &str| line.split_once("] ").map(|(_, item)| item.to_owned());
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let is_numbered = |text: &str| {
        let text = text.trim_start();
        let number = digits(text);
        number > 0 && text[number..].starts_with(". ")
    };
    match scheme {
        Scheme::FixPlan => lines.filter_map(heading).any(|heading| heading.to_lowercase().contains("priority")),
        // `## 1. Group`, and below it `- [ ] 1.1 task`.
        Scheme::OpenSpec => lines.filter_map(heading).any(|heading| is_numbered(&heading)),
        // `- [ ] T001 task`.
        Scheme::SpecKit => lines.filter_map(item).any(|item| item.strip_prefix('T').map_or(0, digits) >= 3),
        // `- [ ] 1. task`.
        Scheme::Kiro => text.contains("_Requirements:") || lines.filter_map(item).any(|item| is_numbered(&item)),
        _ => true,
    }
}

fn readable(path: &Path, schemes: &[Scheme]) -> Vec<Scheme> {
    let Ok(bytes) = read(path) else { return Vec::new() };
    let text = SpecText::new(path.to_string_lossy(), bytes);
    let can = |scheme: &Scheme| ralphloop_spec::read(&SpecFiles::single(*scheme, text.clone())).is_ok();
    schemes.iter().copied().filter(can).collect()
}

/// The formats whose other files stand beside a `tasks.md` in this folder.
pub(super) fn of_folder(folder: &Path) -> Vec<Scheme> {
    const KNOWN_BY: &[(Scheme, &[&str])] = &[
        (Scheme::OpenSpec, &["proposal.md", ".openspec.yaml"]),
        (Scheme::SpecKit, &["spec.md", "plan.md"]),
        (Scheme::Kiro, &["requirements.md"]),
    ];
    let is_there = |names: &&[&str]| names.iter().any(|name| folder.join(name).is_file());
    KNOWN_BY.iter().filter(|(_, names)| is_there(names)).map(|(scheme, _)| *scheme).collect()
}
