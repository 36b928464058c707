//! Work in every format but `OpenSpec` and `prd.json` is worked through to its end, and the file says so afterwards.

use ralphloop_testkit::script::{AgentScript, call};

use crate::dialects::work_through;
use crate::world::{landed_once, scene};

const CHECKLIST: &str = "# PRD: Lost umbrellas\n\n### US-001: Register\n**Priority:** low\n\n- [x] Colour\n- [ ] Size\n\n\
    ### US-002: Match\n**Depends on:** US-009\n\n1. [-] Suggest\n   - [ ] by colour\n";

#[test]
fn a_plain_checklist() {
    let scene = work_through("PRD.md", CHECKLIST, 2);
    assert_eq!(scene.read("PRD.md"), CHECKLIST.replace("[ ]", "[x]").replace("[-]", "[x]"));
    landed_once(&scene, "US-001", "work-1.txt");
    landed_once(&scene, "US-002", "work-2.txt");
}

const FIX_PLAN: &str = "# Fix plan\r\n\r\n## Low\r\n- [ ] Scroll\r\n\r\n## High Priority\r\n- [x] Open\r\n- [ ] Close\r\n\r\n\
    ## Future\r\n- [ ] Fly\r\n";

#[test]
fn a_fix_plan_in_the_order_of_its_priorities() {
    let scene = work_through("fix_plan.md", FIX_PLAN, 2);
    assert_eq!(
        scene.read("fix_plan.md"),
        FIX_PLAN.replace("[ ] Scroll", "[x] Scroll").replace("[ ] Close", "[x] Close")
    );
    landed_once(&scene, "s2", "work-1.txt");
    landed_once(&scene, "s1", "work-2.txt");
}

const SPEC_KIT: &str = "# Tasks: guide\n\n## Phase 1: Setup\n\n- [X] T001 Crate\n- [ ] T002 [P] Linter\n\n## Phase 2: Match\n\n\
    ### Tests\n\n- [ ] T003 [US1] Test\n\n## Notes\n\n- [P] tasks = other files\n";

#[test]
fn a_feature_of_spec_kit() {
    let scene = work_through("specs/001-guide/tasks.md", SPEC_KIT, 2);
    assert_eq!(scene.read("specs/001-guide/tasks.md"), SPEC_KIT.replace("[ ]", "[X]"));
    landed_once(&scene, "2", "work-2.txt");
}

const KIRO: &str = "# Plan\n\n- [x] 1. Model\n  - _Requirements: 1.1_\n- [ ] 2. Calendar\n  - [x] 2.1 Window\n  - [ ] 2.2 Map\n\
    - [ ]* 2.3 Property test\n- [ ]* 3. Sound\n- [ ] 4. Export\n";

#[test]
fn a_spec_of_kiro_in_which_optional_boxes_stay_open() {
    let scene = work_through(".kiro/specs/garden/tasks.md", KIRO, 2);
    assert_eq!(scene.read(".kiro/specs/garden/tasks.md"), KIRO.replace("- [ ] ", "- [x] "));
    landed_once(&scene, "2", "work-1.txt");
    landed_once(&scene, "4", "work-2.txt");
}

const YAML: &str = "# jam week\ntasks:\n  - title: Label printer\n    completed: no   # soon\n    deps: s2\n  - title: \"Shelf: finder\"\n";

#[test]
fn a_yaml_list_whose_comments_and_spelling_stay() {
    let scene = work_through("tasks.yaml", YAML, 2);
    assert_eq!(scene.read("tasks.yaml"), YAML.replace("no  ", "yes  ") + "    completed: true\n");
    landed_once(&scene, "s2", "work-1.txt");
}

#[test]
fn issues_of_beads_are_run_but_never_written() {
    let scene = scene();
    scene.write(".beads/issues.jsonl", "{\"id\":\"owl-1\",\"title\":\"Perch\",\"status\":\"open\"}\n");
    scene.commit_all("Plan");
    scene.scripted_agent(&AgentScript::always([call().write("perch.txt", "on").complete()]));
    scene.run(&["mark", "beads", "owl-1"]).exits(2).says("bd close owl-1");
    scene.run(&["run", "beads", "--headless"]).exits(0);
    landed_once(&scene, "owl-1", "perch.txt");
    scene.tree_is_clean();
    // Nobody has closed it, but its commit tells.
    scene.run(&["run", "beads", "--headless"]).exits(0).says("landed already").says("nothing to do");
    assert_eq!(scene.calls().len(), 1);
}
