//! Whatever the bytes: nothing panics, and a mark changes its own token only.

use proptest::prelude::*;
use ralphloop_core::plan::{Scheme, WorkState};
use ralphloop_spec::{Edit, SpecFiles, SpecText, apply, check, mark_done, read, reconcile};

const SEEDS: &[(Scheme, &str)] = &[
    (
        Scheme::OpenSpec,
        "\u{FEFF}---\na: b\n---\n# Jars\r\n\r\n## 1. Wash **x**\r\n- [ ] 1.1 soap <!-- y -->\r\n\t- [~] rinse\r\n  more `z`\r\n\
         ```sh\r\n- [ ] no\r\n```\r\n> - [ ] q\r\n## Phase 2：填\n1. [x] **2.1** jam\n- [] a\n- [x ] ~~2.2~~ b\n<!--\n- [ ] c\n-->\n* [X] d",
    ),
    (
        Scheme::Prd,
        "\u{FEFF}{\r\n  \"project\": \"k\\u00e9\",\r\n  \"userStories\": [\r\n    {\"id\": 1, \"title\": \"ä\", \"passes\": false, \"status\": \"Done\",\
         \r\n     \"acceptanceCriteria\": [{\"id\": \"AC\", \"text\": \"t\", \"passes\": null}, \"u\"]},\r\n    {\r\n      \"title\": \"b\",\r\n\
         \"dependsOn\": \"1\", \"priority\": \"P1\"\r\n    }\r\n  ],\r\n  \"n\": [1.50, 1e3]\r\n}",
    ),
    (
        Scheme::Markdown,
        "# PRD\r\n- [ ] loose\r\n### US-001: A\r\n**Depends On:** s1, US-9\r\n**Priority:** low\r\n- [ ] a\r\n  - [-] b\r\n\
         ### US-002\n**Priority:** soon\n**Depends on**: US-001\n2. [✗] c\n- [✓] d",
    ),
    (
        Scheme::FixPlan,
        "# Plan\n## P1 - now\n### Docs\n- [ ] a\r\n## Priority: low\n- [x] b\n## Optional\n- [ ] c\n### High priority\n- [-] d",
    ),
    (
        Scheme::SpecKit,
        "---\na: b\n---\n# Tasks\n## Phase 1: Set up\r\n- [ ] T001 [P] [US1] a (depends on T001-T003)\n### Deep\n- [ ] **T002** b\n\
         ## Phase N: x\n- [X] TXXX [Optional] c\n  - [ ] d",
    ),
    (
        Scheme::Kiro,
        "# Plan\r\n- [ ] 1. A\r\n  - [ ]* 1.1 b\r\n    - _Requirements: 1.1，2.3_\r\n- [x]\\* 1.2 c\n  - [-] d\n- [~] 2. (P) E\n- [ ] 4.1 f",
    ),
    (
        Scheme::GitHub,
        "[{\"number\": 1, \"title\": \"a\", \"labels\": [\"p1\"], \"body\": \"- [ ] b\\r\\n  - [x] c\\nDepends on #2, #9\"},\r\n\
         {\"number\": 2, \"title\": \"d\", \"state\": \"OPEN\"}]",
    ),
    (
        Scheme::Beads,
        "{\"id\":\"o-1\",\"title\":\"a\",\"status\":\"open\",\"priority\":0}\r\n\n{\"id\":\"o-1.2\",\"title\":\"b\",\"status\":\"open\",\
         \"dependencies\":[{\"depends_on_id\":\"o-1\",\"type\":\"blocks\"}]}",
    ),
    (
        Scheme::Yaml,
        "# c\r\ntasks:\r\n  - title: a b\r\n      c\r\n    criteria: [x, 'y: z']\r\n  - {title: d, id: 7}\r\n  - id: e\r\n    title: \"f\"\r\n\
         \u{20}   completed: no # g\r\n    deps: [7]\r\n  - title: h\n    status: 'Done'\n  - title: i\n    status: open\n    done:\n",
    ),
    (
        Scheme::Flight,
        "# 2.3 Sorter\r\n- **Requires**: 1.1\r\n## 2.3.1. Towns\r\n**Status**: ✅ Complete (x)\r\n### 2.3.2 Trays\r\n- Status: Planned\r\n\
         - **Verified**: false\r\n**Verification**:\r\n- command: `make a`\r\n- timeout: 2m\r\n---\r\n## 2.3.3 Words\r\nText.\r\n",
    ),
    (
        Scheme::Backlog,
        "---\r\nid: BACK-1.2\r\ntitle: >-\r\n  a\r\n  b\r\nstatus: \"To Do\" # x\r\nassignee: [@a, '@b']\r\nlabels: [ä]\r\ndependencies:\r\n  - back-9\r\n\
         ---\r\n## Description\r\nx\r\n## Acceptance Criteria\r\n<!-- AC:BEGIN -->\r\n- [ ] #1 a\r\n  - [x] b\r\n<!-- AC:END -->\r\n\
         ## Definition of Done\r\n- [ ] #1 c\r\n",
    ),
];

const TOKENS: &[&str] = &[
    "[",
    "]",
    "- [ ] ",
    "[x]",
    "#",
    "\n",
    "\r\n",
    "`",
    "```",
    "~~~",
    "<!--",
    "-->",
    "**",
    "~~",
    "\"",
    "{",
    "}",
    ",",
    ":",
    "\\",
    "\0",
    "1.",
    "s1",
    "第",
    "\u{a0}",
    "：",
    "null",
    "true",
    "\"passes\": true",
    "\"id\": 1",
    "> ",
    "\t",
    "<<<<<<< ",
    "=======",
];

/// Files to begin with: those above, and the corpus if it is here.
fn seeds() -> Vec<(Scheme, Vec<u8>)> {
    let mut seeds: Vec<_> = SEEDS.iter().map(|(scheme, text)| (*scheme, text.as_bytes().to_vec())).collect();
    if let Some(corpus) = crate::fixtures::corpus() {
        for (folder, scheme) in crate::fixtures::FORMATS {
            let files = std::fs::read_dir(corpus.join(folder)).unwrap().map(|entry| entry.unwrap().path());
            let sources = files.filter(|path| !path.to_string_lossy().ends_with(".expect.json"));
            seeds.extend(sources.map(|path| (*scheme, std::fs::read(path).unwrap())));
        }
    }
    seeds.sort_by(|a, b| a.1.cmp(&b.1));
    seeds
}

fn mutated() -> impl Strategy<Value = (Scheme, Vec<u8>)> {
    let change = (
        any::<prop::sample::Index>(),
        0_usize..12,
        prop_oneof![
            prop::sample::select(TOKENS).prop_map(|token| token.as_bytes().to_vec()),
            prop::collection::vec(any::<u8>(), 0..3),
        ],
    );
    (prop::sample::select(seeds()), prop::collection::vec(change, 0..6)).prop_map(|((scheme, seed), changes)| {
        let mut bytes = seed;
        for (at, remove, insert) in changes {
            let start = at.index(bytes.len() + 1);
            let end = (start + remove).min(bytes.len());
            bytes.splice(start..end, insert);
        }
        (scheme, bytes)
    })
}

/// A few hundred cases; a search for rare ones sets `PROPTEST_CASES`.
fn config() -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig { cases: usual.cases.max(400), failure_persistence: None, ..usual }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn reading_and_checking_never_panic((scheme, bytes) in mutated()) {
        let mut files = SpecFiles::single(scheme, SpecText::new("f.json", bytes.clone()));
        for path in ["specs/a/spec.md", "openspec/config.yaml", "proposal.md"] {
            files.beside.push(SpecText::new(path, bytes.clone()));
        }
        let findings = check(&files);
        if let Err(error) = read(&files) {
            prop_assert_eq!(findings.len(), 1);
            prop_assert!(!error.to_string().is_empty());
        }
    }

    #[test]
    fn a_mark_changes_its_item_and_every_other_byte_stays((scheme, bytes) in mutated()) {
        let files = SpecFiles::single(scheme, SpecText::new("f.json", bytes.clone()));
        let Ok(before) = read(&files) else { return Ok(()) };
        for story in &before.plan.stories {
            let tasks = story.tasks.iter().map(|task| task.id.as_str());
            for id in tasks.chain([story.id.as_str()]) {
                let Ok(edits) = mark_done(scheme, &bytes, id) else { continue };
                let after = apply(&bytes, &edits).unwrap();
                prop_assert!(only_tokens_differ(&bytes, &after, &edits));
                let reading = read(&SpecFiles::single(scheme, SpecText::new("f.json", after.clone()))).unwrap();
                prop_assert_eq!(before.plan.stories.len(), reading.plan.stories.len());
                prop_assert_eq!(mark_done(scheme, &after, id).unwrap(), vec![]);
            }
        }
    }

    #[test]
    fn other_stories_are_never_finished_by_what_an_agent_writes((scheme, now) in mutated(), landed in any::<bool>()) {
        let checkpoint = SEEDS.iter().find(|(known, _)| *known == scheme).unwrap().1.as_bytes();
        let files = |bytes: &[u8]| SpecFiles::single(scheme, SpecText::new("f.json", bytes));
        let before = read(&files(checkpoint)).unwrap().plan;
        let own = before.stories[0].id.clone();
        let out = reconcile(scheme, checkpoint, Some(&now), &own, landed);
        let after = read(&files(&out.bytes)).unwrap().plan;
        for story in &before.stories {
            let new = after.story(&story.id);
            prop_assert!(new.is_some(), "{} is gone", story.id);
            let done = new.is_some_and(|new| new.state == WorkState::Done);
            let wanted = story.id == own && landed || story.state == WorkState::Done;
            prop_assert!(!done || wanted, "{} is done", story.id);
            prop_assert!(done || story.id != own || !landed || !before.writable, "{} landed and is not done", story.id);
        }
    }
}

/// Between the tokens that the edits replace, both files hold the same bytes.
fn only_tokens_differ(before: &[u8], after: &[u8], edits: &[Edit]) -> bool {
    let mut sorted: Vec<_> = edits.iter().collect();
    sorted.sort_by_key(|edit| edit.offset);
    let (mut old, mut new) = (0, 0);
    for edit in sorted {
        let same = edit.offset - old;
        if before[old..edit.offset] != after[new..new + same] {
            return false;
        }
        old = edit.offset + edit.remove.len();
        new += same + edit.insert.len();
    }
    before[old..] == after[new..]
}
