//! Lines that say one thing about a story: `**Priority:** high`, `**Depends On**: US-001, US-002`.

use ralphloop_core::ids::StoryId;

use crate::label;
use crate::markdown::boxes;

/// The value of the first line that is the field `name` (lower case); the name is bold, the colon in or behind it.
pub(crate) fn bold<'p>(prose: &'p [String], name: &str) -> Option<&'p str> {
    prose.iter().find_map(|line| value(line, name))
}

/// The value of such a field, or where its line ends with the colon, the items of the list below it.
pub(crate) fn bold_list(prose: &[String], name: &str) -> Option<String> {
    let at = prose.iter().position(|line| value(line, name).is_some())?;
    let on_line = value(&prose[at], name).filter(|value| !value.is_empty()).map(str::to_owned);
    on_line.or_else(|| {
        let below = prose[at + 1..].iter().skip_while(|line| line.trim().is_empty());
        let items: Vec<&str> = below.map_while(|line| item(line)).collect();
        Some(items.join(", "))
    })
}

/// The text of a list item that is no box and no field.
fn item(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let text = &line[boxes::list_marker(line)?..];
    (text.starts_with(char::is_whitespace) && !text.trim_start().starts_with("**")).then(|| text.trim())
}

fn value<'l>(line: &'l str, name: &str) -> Option<&'l str> {
    let line = line.trim();
    let line = boxes::list_marker(line)
        .map(|marker| &line[marker..])
        .filter(|rest| rest.starts_with(char::is_whitespace))
        .map_or(line, str::trim_start);
    let (label, rest) = line.strip_prefix("**")?.split_once("**")?;
    let (label, value) = match label.trim_end().strip_suffix([':', '：']) {
        Some(label) => (label, rest),
        None => (label, rest.trim_start().strip_prefix([':', '：'])?),
    };
    label.to_lowercase().split_whitespace().eq(name.split(' ')).then(|| value.trim())
}

/// The stories that a list names by number or key (`US-001, Phase 2 and 3.1 (the hinge)`); words name none.
pub(crate) fn ids(list: &str) -> Vec<StoryId> {
    let mut ids: Vec<StoryId> = Vec::new();
    let parts = list.split([',', ';', '、', '，', '&']).flat_map(|part| part.split(" and "));
    for part in parts {
        let part = part.trim().trim_matches(['`', '#', '[', ']']);
        if let Some(labelled) = label::heading(part)
            && !ids.iter().any(|known| known.as_str() == labelled.id)
        {
            ids.push(labelled.id.into());
        }
    }
    ids
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_a_bold_name_with_a_colon_in_any_case() {
        let prose: Vec<String> = ["text", "- **depends on**: 1", "**Priority:** P1", "**Prioritys:** x", "Priority: 3"]
            .map(str::to_owned)
            .to_vec();
        assert_eq!((bold(&prose, "depends on"), bold(&prose, "priority")), (Some("1"), Some("P1")));
        assert_eq!(bold(&prose[3..], "priority"), None);
    }

    #[test]
    fn a_field_without_a_value_has_the_list_below_it() {
        let prose = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        let found = |text| bold_list(&prose(text), "depends on").map(|list| ids(&list));
        assert_eq!(
            found("**Depends on:**\n\n- US-001 (soft)\n* 2\ntext\n- 3"),
            Some(vec!["US-001".into(), "2".into()])
        );
        assert_eq!(found("**Depends on:** 1\n- 2"), Some(vec!["1".into()]));
        assert_eq!(found("- **Depends on:**\n- **Priority:** 1"), Some(Vec::new()));
        assert_eq!(found("- 2"), None);
    }

    #[test]
    fn ids_are_taken_out_of_a_list_and_words_are_none() {
        let found = |list| ids(list).iter().map(|id| id.as_str().to_owned()).collect::<Vec<_>>();
        assert_eq!(found("US-001, US-002"), ["US-001", "US-002"]);
        assert_eq!(found("Phase 2 and 3.1 (the hinge); US-001, US-001."), ["2", "3.1", "US-001"]);
        assert!(found("None").is_empty() && found("").is_empty() && found("the database, when it is up").is_empty());
    }
}
