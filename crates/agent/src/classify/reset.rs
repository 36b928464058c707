//! When a limit ends, out of a client's words: `|1795821068`, `resets 3:45pm (Europe/Warsaw)`, `resets Mon 9am`,
//! `try again at 11:21 PM`, `resets Oct 9, 6am (UTC)`, `retry after 3600s`, `resets in 2h 15m`.

use std::sync::LazyLock;
use std::time::Duration;

use jiff::civil::{Date, Weekday};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{Span, ZonedDateTime};
use ralphloop_core::units::Timestamp;
use regex::{Captures, Regex};

use super::Clock;

/// A stated time that has just gone by is taken as it is, since clocks differ and minutes are not cut; an older one is
/// that of the next day.
const JUST_PAST: Duration = Duration::from_mins(2);

/// The time at which a limit is said to end. `None` if none is said, or in a zone that is not known: better no time
/// than a wrong one.
pub(super) fn reset_time(text: &str, clock: &Clock) -> Option<Timestamp> {
    epoch(text).or_else(|| date_and_time(text)).or_else(|| from_now(text, clock)).or_else(|| on_the_clock(text, clock))
}

#[expect(clippy::expect_used, reason = "constant patterns, all of them used by the tests")]
fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a constant pattern")
}

fn epoch(text: &str) -> Option<Timestamp> {
    static EPOCH: LazyLock<Regex> = LazyLock::new(|| {
        pattern(r#"(?i)(?:\||\bresets?(?:[_ ]?(?:at|time))?["']?\s*[:=]?)\s*["']?(\d{10}|\d{13})(?:\D|$)"#)
    });
    let digits = EPOCH.captures(text)?.get(1)?.as_str();
    let number: i64 = digits.parse().ok()?;
    Some(Timestamp(if digits.len() == 10 { number * 1000 } else { number }))
}

fn date_and_time(text: &str) -> Option<Timestamp> {
    static FULL: LazyLock<Regex> = LazyLock::new(|| {
        pattern(r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)(Z|[+-]\d\d:\d\d|\s?(?:UTC|GMT)\b)")
    });
    let said = FULL.captures(text)?;
    let offset = if said[2].starts_with(['+', '-']) { &said[2] } else { "Z" };
    let moment: jiff::Timestamp = format!("{}{offset}", &said[1]).parse().ok()?;
    Some(Timestamp(moment.as_millisecond()))
}

fn from_now(text: &str, clock: &Clock) -> Option<Timestamp> {
    static LEAD: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r#"(?i)\b(?:retry[- ]after|retry in|try again in|try again after|resets?[ _]in(?:_seconds)?["']?|wait)(?:\s+for)?(?:\s+about|\s+approximately)?\s*[:=~]?\s*((?:(?:and\s+|,\s*)?\d+(?:\.\d+)?\s*[a-z]*\.?\s*)+)"#,
        )
    });
    static PART: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)(\d+(?:\.\d+)?)\s*([a-z]*)"));
    let spans = LEAD.captures(text)?.get(1)?.as_str();
    let mut seconds = 0.0;
    for part in PART.captures_iter(spans) {
        let number: f64 = part[1].parse().ok()?;
        seconds += number
            * match part[2].to_lowercase().as_str() {
                "" | "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
                "ms" | "milliseconds" => 0.001,
                "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
                "h" | "hr" | "hrs" | "hour" | "hours" => 3600.0,
                "d" | "day" | "days" => 86400.0,
                "w" | "week" | "weeks" => 604_800.0,
                _ => break,
            };
    }
    (seconds > 0.0).then(|| clock.now.after(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)))
}

fn on_the_clock(text: &str, clock: &Clock) -> Option<Timestamp> {
    static TIME: LazyLock<Regex> = LazyLock::new(|| {
        pattern(concat!(
            r"(?i)\b(?:resets?|try again|retry|available again|until)\s+(?:at\s+|on\s+)?",
            r"(?:(?P<tomorrow>tomorrow)\s+(?:at\s+)?)?",
            r"(?:(?P<weekday>mon|tue|wed|thu|fri|sat|sun)[a-z]*,?\s+(?:at\s+)?)?",
            r"(?:(?P<month>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?\s+(?P<day>\d{1,2})(?:st|nd|rd|th)?",
            r"(?:,?\s+(?P<year>20\d\d))?,?\s+(?:at\s+)?)?",
            r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d))?\s*(?P<half>[ap]\.?m\b\.?)?",
            r"(?:\s*\((?P<zone>[A-Za-z0-9_+/:\-]+)\)|\s+(?P<bare>(?-i:[A-Z]{3,5})(?:[+\-]\d{1,2}(?::\d\d)?)?)\b)?",
        ))
    });
    let said = TIME.captures(text)?;
    let (hour, minute) = time_of_day(&said)?;
    let zone = zone(&said, clock)?;
    let now = jiff::Timestamp::from_millisecond(clock.now.0).ok()?.to_zoned_datetime(zone.clone());
    let at = |date: Date| date.at(hour, minute, 0, 0).to_zoned_datetime(zone.clone()).ok();
    let moment = if let Some(month) = said.name("month") {
        let year = said.name("year").map_or(Some(now.year()), |year| year.as_str().parse().ok())?;
        let date = Date::new(year, month_number(month.as_str())?, said["day"].parse().ok()?).ok()?;
        let this_year = at(date)?;
        // A date far in the past, said without a year, is that of the next one.
        let is_old = this_year.timestamp().as_millisecond() < now.timestamp().as_millisecond() - 180 * 86_400_000;
        if said.name("year").is_none() && is_old {
            at(date.checked_add(Span::new().years(1)).ok()?)?
        } else {
            this_year
        }
    } else {
        let weekday = said.name("weekday").and_then(|day| weekday(day.as_str()));
        let tomorrow = said.name("tomorrow").is_some();
        if tomorrow { at(now.date().tomorrow().ok()?)? } else { next_time(&now, weekday, at)? }
    };
    Some(Timestamp(moment.timestamp().as_millisecond()))
}

/// The first such time from now on: today, tomorrow, or on the weekday.
fn next_time(
    now: &ZonedDateTime,
    weekday: Option<Weekday>,
    at: impl Fn(Date) -> Option<ZonedDateTime>,
) -> Option<ZonedDateTime> {
    let earliest = now.timestamp().as_millisecond() - i64::try_from(JUST_PAST.as_millis()).ok()?;
    (0..=7)
        .filter_map(|days| now.date().checked_add(Span::new().days(days)).ok())
        .filter(|date| weekday.is_none_or(|day| date.weekday() == day))
        .filter_map(at)
        .find(|moment| moment.timestamp().as_millisecond() >= earliest)
}

fn time_of_day(said: &Captures<'_>) -> Option<(i8, i8)> {
    let hour: i8 = said["hour"].parse().ok()?;
    let minute: i8 = said.name("minute").map_or(Some(0), |minute| minute.as_str().parse().ok())?;
    let hour = match said.name("half").map(|half| half.as_str().to_ascii_lowercase()) {
        Some(half) if (1..=12).contains(&hour) => hour % 12 + if half.starts_with('p') { 12 } else { 0 },
        None if said.name("minute").is_some() => hour,
        // 13pm, or a bare number, is no time of day.
        _ => return None,
    };
    ((0..24).contains(&hour) && (0..60).contains(&minute)).then_some((hour, minute))
}

fn zone(said: &Captures<'_>, clock: &Clock) -> Option<TimeZone> {
    match said.name("zone").or_else(|| said.name("bare")).map(|zone| zone.as_str()) {
        None => Some(clock.zone.clone()),
        Some(name) => from_utc(name).or_else(|| TimeZoneDatabase::bundled().get(name).ok()),
    }
}

/// `UTC`, `GMT+2`, `UTC-03:30`, `+05:30`.
fn from_utc(name: &str) -> Option<TimeZone> {
    let upper = name.to_ascii_uppercase();
    let offset = upper.strip_prefix("UTC").or_else(|| upper.strip_prefix("GMT")).unwrap_or(&upper);
    if offset.is_empty() {
        return Some(TimeZone::UTC);
    }
    let (sign, digits) =
        offset.strip_prefix('+').map(|rest| (1, rest)).or_else(|| Some((-1, offset.strip_prefix('-')?)))?;
    let (hours, minutes) = digits.split_once(':').unwrap_or((digits, "0"));
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    let seconds = sign * (hours.checked_mul(3600)? + minutes.checked_mul(60)?);
    Some(TimeZone::fixed(jiff::tz::Offset::from_seconds(seconds).ok()?))
}

fn weekday(name: &str) -> Option<Weekday> {
    Some(match name.to_ascii_lowercase().as_str() {
        "mon" => Weekday::Monday,
        "tue" => Weekday::Tuesday,
        "wed" => Weekday::Wednesday,
        "thu" => Weekday::Thursday,
        "fri" => Weekday::Friday,
        "sat" => Weekday::Saturday,
        "sun" => Weekday::Sunday,
        _ => return None,
    })
}

fn month_number(name: &str) -> Option<i8> {
    const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let name = name.to_ascii_lowercase();
    i8::try_from(MONTHS.iter().position(|month| *month == name)?).ok()?.checked_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `text` says at `now`, both in UTC, for a user in `zone`.
    fn read(text: &str, now: &str, zone: &str) -> Option<String> {
        let now: jiff::Timestamp = now.parse().unwrap();
        let zone = TimeZoneDatabase::bundled().get(zone).unwrap();
        let clock = Clock { now: Timestamp(now.as_millisecond()), zone };
        let moment = reset_time(text, &clock)?;
        Some(jiff::Timestamp::from_millisecond(moment.0).unwrap().to_string())
    }

    fn at_noon(text: &str) -> Option<String> {
        // A Friday.
        read(text, "2026-11-27T12:00:00Z", "UTC")
    }

    #[test]
    fn every_wording_is_read() {
        for (text, want) in [
            ("Claude AI usage limit reached|1795821068", "2026-11-27T23:11:08Z"),
            ("Claude AI usage limit reached|1795821068000", "2026-11-27T23:11:08Z"),
            ("You've hit your 5-hour limit · resets 11:11pm (UTC)", "2026-11-27T23:11:00Z"),
            ("You've hit your session limit · resets 3:45pm (Europe/Warsaw)", "2026-11-27T14:45:00Z"),
            ("resets Mon 9am", "2026-11-30T09:00:00Z"),
            ("resets Friday at 1pm", "2026-11-27T13:00:00Z"),
            ("resets Fri 9am", "2026-12-04T09:00:00Z"),
            ("try again at 11:21 PM", "2026-11-27T23:21:00Z"),
            ("try again at Dec 1st, 2026 6:05 AM.", "2026-12-01T06:05:00Z"),
            ("resets Jan 3, 6am (UTC)", "2027-01-03T06:00:00Z"),
            ("resets 12am", "2026-11-28T00:00:00Z"),
            ("resets at 15:30", "2026-11-27T15:30:00Z"),
            ("Suggested retry after 3600s", "2026-11-27T13:00:00Z"),
            ("retry-after: 90", "2026-11-27T12:01:30Z"),
            ("resets in 2h 15m", "2026-11-27T14:15:00Z"),
            ("Please try again in 1 hour and 5 minutes.", "2026-11-27T13:05:00Z"),
            ("limit until 2026-11-28T01:00:00+01:00", "2026-11-28T00:00:00Z"),
        ] {
            assert_eq!(at_noon(text).as_deref(), Some(want), "{text}");
        }
    }

    #[test]
    fn wordings_that_are_rarer_are_read_too() {
        for (text, want) in [
            (r#"{"type":"usage_limit_reached","resets_at":1795821068}"#, "2026-11-27T23:11:08Z"),
            ("X-RateLimit-Reset: 1795821068000", "2026-11-27T23:11:08Z"),
            (r#"{"error":{"resets_in_seconds":5400}}"#, "2026-11-27T13:30:00Z"),
            ("Claude usage limit reached. Your limit will reset at 3pm (America/New_York).", "2026-11-27T20:00:00Z"),
            ("limit reached, resets tomorrow at 9am (UTC)", "2026-11-28T09:00:00Z"),
            ("resets Tuesday, December 1 at 9am", "2026-12-01T09:00:00Z"),
            ("resets in about 2 hours", "2026-11-27T14:00:00Z"),
            ("resets in ~45 min", "2026-11-27T12:45:00Z"),
            ("Try again in 1 week and 2 days", "2026-12-06T12:00:00Z"),
            ("resets 3:45pm (UTC+2)", "2026-11-27T13:45:00Z"),
            ("resets 3:45pm (GMT-03:30)", "2026-11-27T19:15:00Z"),
            ("resets 9pm GMT+1", "2026-11-27T20:00:00Z"),
            ("limit until 2026-11-28 01:00 UTC", "2026-11-28T01:00:00Z"),
            ("resets Nov 26, 6am (UTC)", "2026-11-26T06:00:00Z"),
        ] {
            assert_eq!(at_noon(text).as_deref(), Some(want), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_no_time() {
        // Read as if it were the user's own zone, a time of another would be wrong.
        for text in [
            "resets 10pm PST",
            "resets 10pm (PST)",
            "resets 3pm (UTC+99)",
            "resets 3pm (UTC+2:x)",
            "resets Feb 29, 6am",
        ] {
            assert_eq!(at_noon(text), None, "{text}");
        }
        for text in
            ["You've reached your usage limit.", "resets soon", "resets 10", "resets 3pm (Mars/Base)", "resets 13pm"]
        {
            assert_eq!(at_noon(text), None, "{text}");
        }
    }

    #[test]
    fn a_time_that_has_gone_by_is_tomorrows_but_not_one_just_past() {
        assert_eq!(at_noon("resets 9am").as_deref(), Some("2026-11-28T09:00:00Z"));
        assert_eq!(read("resets 9am", "2026-11-27T09:00:40Z", "UTC").as_deref(), Some("2026-11-27T09:00:00Z"));
    }

    #[test]
    fn a_time_without_zone_is_the_users_and_summer_time_is_kept_in_mind() {
        // The night in which Warsaw's clocks go back from 3 to 2.
        let now = "2026-10-24T20:00:00Z";
        assert_eq!(read("resets 6am", now, "Europe/Warsaw").as_deref(), Some("2026-10-25T05:00:00Z"));
        assert_eq!(read("resets 11pm", now, "Europe/Warsaw").as_deref(), Some("2026-10-24T21:00:00Z"));
        // The night in which 2:30 does not exist: half an hour after the gap.
        let spring = read("resets 2:30am", "2026-03-28T20:00:00Z", "Europe/Warsaw");
        assert_eq!(spring.as_deref(), Some("2026-03-29T01:30:00Z"));
    }

    #[test]
    fn limits_of_sessions_weeks_and_extra_usage_say_their_ends_in_many_ways() {
        for (text, want) in [
            ("You've hit your weekly limit · resets Mon 9am (Europe/Warsaw)", "2026-11-30T08:00:00Z"),
            ("You're out of extra usage · resets Dec 3, 9am (America/New_York)", "2026-12-03T14:00:00Z"),
            ("You've hit your Opus limit · resets 3am (Asia/Kolkata)", "2026-11-27T21:30:00Z"),
            ("5-hour limit reached ∙ resets 9pm", "2026-11-27T21:00:00Z"),
            (
                "You've hit your usage limit. Upgrade to Pro or try again at Nov 28th, 2026 12:05 AM.",
                "2026-11-28T00:05:00Z",
            ),
            ("You've hit your usage limit. Try again in 3 days 4 hours 9 minutes.", "2026-11-30T16:09:00Z"),
            ("Weekly limit reached ∙ resets on Thursday at 11:30 p.m.", "2026-12-03T23:30:00Z"),
        ] {
            assert_eq!(at_noon(text).as_deref(), Some(want), "{text}");
        }
    }

    const ZONES: [&str; 6] =
        ["UTC", "Europe/Warsaw", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "America/St_Johns"];

    proptest::proptest! {
        #[test]
        fn a_time_of_day_is_the_next_such_time_of_its_zone_whatever_the_clocks_do(
            now in 1_767_225_600_i64..1_830_297_600,
            (hour, minute) in (0_i8..24, 0_i8..60),
            zone in proptest::sample::select(ZONES.to_vec()),
        ) {
            let half = if hour < 12 { "am" } else { "pm" };
            let twelve = if hour % 12 == 0 { 12 } else { hour % 12 };
            let text = format!("You've hit your session limit · resets {twelve}:{minute:02}{half} ({zone})");
            let clock = Clock { now: Timestamp(now * 1000), zone: TimeZone::UTC };
            let at = reset_time(&text, &clock).unwrap().0 / 1000;
            let there = jiff::Timestamp::from_second(at).unwrap().to_zoned_datetime(TimeZoneDatabase::bundled().get(zone).unwrap());
            proptest::prop_assert!(at >= now - 120 && at <= now + 25 * 3600, "{text} at {now} is {there}");
            // A time that is left out when clocks go forward is read as the one after the gap.
            let said = there.date().at(hour, minute, 0, 0);
            let is_it = (there.hour(), there.minute()) == (hour, minute);
            let in_a_gap = said.to_zoned_datetime(there.time_zone().clone()).unwrap().datetime() != said;
            proptest::prop_assert!(is_it || in_a_gap, "{text} at {now} is {there}");
        }

        #[test]
        fn a_weekday_is_within_a_week_and_on_that_day(
            now in 1_767_225_600_i64..1_830_297_600,
            day in 0_usize..7,
            zone in proptest::sample::select(ZONES.to_vec()),
        ) {
            let (short, long) = [
                ("Mon", Weekday::Monday), ("Tue", Weekday::Tuesday), ("Wed", Weekday::Wednesday),
                ("Thu", Weekday::Thursday), ("Fri", Weekday::Friday), ("Sat", Weekday::Saturday), ("Sun", Weekday::Sunday),
            ][day];
            let clock = Clock { now: Timestamp(now * 1000), zone: TimeZone::UTC };
            let at = reset_time(&format!("weekly limit reached, resets {short} 9am ({zone})"), &clock).unwrap().0 / 1000;
            let there = jiff::Timestamp::from_second(at).unwrap().to_zoned_datetime(TimeZoneDatabase::bundled().get(zone).unwrap());
            proptest::prop_assert_eq!((there.weekday(), there.hour()), (long, 9));
            proptest::prop_assert!(at >= now - 120 && at <= now + 8 * 86_400);
        }

        #[test]
        fn no_text_breaks_the_reading(text in ".{0,200}", now in i64::MIN..i64::MAX) {
            for text in [text.clone(), format!("resets {text}")] {
                let clock = Clock { now: Timestamp(now), zone: TimeZone::UTC };
                proptest::prop_assert_eq!(reset_time(&text, &clock), reset_time(&text, &clock));
            }
        }
    }
}
