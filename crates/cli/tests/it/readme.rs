//! What the README prints is what happens: its first run, command by command.

use std::path::Path;

use ralphloop_testkit::scene::Scene;

use crate::world::binary;

/// The blocks of commands in the section of that heading. A line of a block is no heading.
fn blocks(heading: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (mut blocks, mut here, mut block) = (Vec::new(), false, None::<String>);
    for line in text.lines() {
        match &mut block {
            Some(_) if line == "```" => blocks.extend(block.take().filter(|_| here)),
            Some(text) => text.extend([line, "\n"]),
            None if line.starts_with("```") => block = Some(String::new()),
            None if line.starts_with("## ") => here = line == format!("## {heading}"),
            None => {}
        }
    }
    blocks
}

/// The commands of a block as a script, and the lines that it shows as printed.
fn commands(block: &str) -> (String, Vec<&str>) {
    let (mut script, mut printed) = (String::new(), Vec::new());
    let mut inside = false;
    for line in block.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            script.extend([command, "\n"]);
            inside = command.ends_with("<<'END'");
        } else if inside {
            script.extend([line, "\n"]);
            inside = line != "END";
        } else {
            printed.push(line);
        }
    }
    (script, printed)
}

/// A line without what differs from run to run: numbers and names of commits. How many stories there are stays told by
/// their lines.
fn essence(line: &str) -> String {
    let is_name = |word: &str| word.len() == 10 && word.chars().all(|c| c.is_ascii_hexdigit());
    let words = line.split_inclusive(|c: char| !c.is_ascii_alphanumeric());
    let plain: String = words
        .map(|word| {
            let bare = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
            if is_name(bare) { word.replacen(bare, "0", 1) } else { word.to_owned() }
        })
        .collect();
    let mut out = String::new();
    for c in plain.chars() {
        match c {
            '0'..='9' | '.' if out.ends_with('0') => {}
            '0'..='9' => out.push('0'),
            c => out.push(c),
        }
    }
    out
}

#[test]
fn the_first_run_of_the_readme_goes_as_it_is_printed_there() {
    let scene = Scene::without_repository(binary());
    scene.link_program("ralphloop", &binary());
    let blocks = blocks("A first run");
    assert_eq!(blocks.len(), 2, "{blocks:#?}");
    let mut before = String::new();
    for block in &blocks {
        let (script, printed) = commands(block);
        // Both streams in one, in the order of time, as a terminal shows them.
        let all = format!("exec 2>&1\n{before}{script}");
        let output = scene.command("bash").args(["-c", &all]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let got: Vec<String> = text.lines().map(essence).collect();
        let want: Vec<String> = printed.iter().map(|line| essence(line)).collect();
        assert!(got.ends_with(&want), "the README:\n{}\n\nthe program:\n{}", want.join("\n"), got.join("\n"));
        before = "cd lamps\n".to_owned();
    }
}
