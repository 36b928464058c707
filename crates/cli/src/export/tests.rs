use serde_json::{Value, json};

use super::prd_status::{PrdStatus, Statistics};
use super::{Ours, StateFile, with_part};

fn part(ours: Ours, text: &str) -> StateFile {
    StateFile { path: "progress.txt".to_owned(), heading: "# Log", part: "x".to_owned(), ours, text: text.to_owned() }
}

#[test]
fn only_our_part_of_a_file_changes() {
    let first = with_part("# Log\nmine\n", &part(Ours::Top, "- a\n"));
    assert_eq!(first, "# Log\n\n<!-- ralphloop: x -->\n- a\n<!-- ralphloop: end of x -->\n\nmine\n");
    let second = with_part(&first, &part(Ours::Top, "- b\n"));
    assert_eq!(second, first.replace("- a", "- b"));
    let end = with_part("mine", &part(Ours::End, "- a\n"));
    assert_eq!(end, "mine\n\n<!-- ralphloop: x -->\n- a\n<!-- ralphloop: end of x -->\n");
    assert!(with_part("", &part(Ours::End, "- a\n")).starts_with("# Log\n\n<!--"));
}

fn status(stories: &Value) -> PrdStatus {
    serde_json::from_value(json!({
        "version": 1, "lastUpdated": "2026-01-17T14:00:00Z", "prdFile": "docs/prd.md", "stories": stories,
        "statistics": {"total": 1, "passed": 1, "failed": 0, "pending": 0},
    }))
    .unwrap()
}

#[test]
fn what_a_status_file_says_beyond_the_run_stays() {
    let entry = json!({"date": "2026-01-17", "result": "pass", "notes": "verified"});
    let new = status(&json!([{"id": "US-1", "title": "Lamp", "passes": true, "history": [entry]}]));
    let old = json!({
        "version": 1, "owner": "Ada",
        "stories": [
            {"id": "US-1", "title": "Lamp", "passes": false, "note": "mine",
             "verification": {"type": "manual", "criteria": ["it shines"]},
             "history": [{"date": "2026-01-16", "result": "fail", "notes": "dark"}]},
            {"id": "US-2", "title": "Cord", "passes": false},
        ],
    });
    let merged = new.over(&old.to_string()).unwrap();
    assert_eq!(merged["owner"], "Ada");
    assert_eq!((&merged["stories"][0]["passes"], &merged["stories"][0]["note"]), (&json!(true), &json!("mine")));
    assert_eq!(merged["stories"][0]["verification"]["type"], "manual");
    assert_eq!(merged["stories"][0]["history"].as_array().unwrap().len(), 2);
    let sums: Statistics = serde_json::from_value(merged["statistics"].clone()).unwrap();
    assert_eq!(sums, Statistics { total: 2, passed: 1, failed: 0, pending: 1 });
    // Written twice, nothing is there twice.
    assert_eq!(new.over(&merged.to_string()).unwrap(), merged);
    assert!(new.over("{").is_err());
}
