//! In which settings the flows of a sweep differ, and the values of the others that are not usual.

use super::row::Id;
use super::table::{ROWS, Row, Settings};

/// What stands in a table for a setting that does not apply.
pub const NO_VALUE: &str = "-";

/// The settings in which `settings` differ, as far as they apply, in the order of the table.
pub fn differing(settings: &[Settings]) -> Vec<&'static Row> {
    ROWS.iter()
        .filter(|row| {
            let mut with = settings.iter().filter(|settings| row.tells(settings));
            let first = with.next();
            first.is_some_and(|first| with.any(|other| !row.is_equal(first, other)))
        })
        .collect()
}

/// Those by which `settings` are told apart: [`differing`] without those whose value is everywhere the default that follows
/// from the others (`Row::may_follow`).
pub fn telling_apart(settings: &[Settings]) -> Vec<&'static Row> {
    let usual: Vec<Settings> = settings.iter().map(Settings::usual).collect();
    let mut rows = differing(settings);
    rows.retain(|row| {
        let mut both = settings.iter().zip(&usual);
        !row.may_follow || both.any(|(it, usual)| row.tells(it) && !row.is_equal(it, usual))
    });
    rows
}

impl Row {
    /// Whether its value tells something of a case with these settings. What stands in the head of an id always does.
    fn tells(&self, settings: &Settings) -> bool {
        self.id == Id::Head || self.has_effect(settings)
    }

    /// Its value in a table of cases: `-` where it does not apply, `auto` where nothing was asked for.
    pub fn cell(&self, settings: &Settings) -> String {
        match self.text(settings) {
            _ if !self.has_effect(settings) => NO_VALUE.to_owned(),
            text if text.is_empty() => "auto".to_owned(),
            text => text,
        }
    }

    /// Heading of its column in a table of cases.
    pub fn heading_of_column(&self) -> &'static str {
        match self.column {
            "" => self.flag,
            column => column,
        }
    }
}

impl Settings {
    /// The settings with the defaults that follow from the rest in place of what may follow.
    fn usual(&self) -> Settings {
        let mut usual = Settings::unfitted();
        for row in ROWS.iter().filter(|row| !row.may_follow) {
            row.copy(&mut usual, self);
        }
        usual.fit();
        usual
    }

    /// The settings that apply and are not their default, in the order of the table; what follows from others is a default
    /// too.
    pub fn unusual(&self) -> impl Iterator<Item = &'static Row> + '_ {
        let (default, usual) = (Settings::default(), self.usual());
        ROWS.iter().filter(move |row| {
            let usual = if row.may_follow { &usual } else { &default };
            row.has_effect(self) && !row.is_equal(self, usual)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(rows: impl IntoIterator<Item = &'static Row>) -> Vec<&'static str> {
        rows.into_iter().map(|row| row.flag).collect()
    }

    /// Two settings that differ in this one alone, to which it applies.
    fn apart(row: &'static Row) -> [Settings; 2] {
        let bases = "op=send pattern=incast pattern=outcast op=connect op=fetch-add service=ud rate=2M \
                     spread=round-robin memory=1M";
        let values = "true 3 7 64 2048 49152 write uc shared per-qp ring 64:1,128:1 huge strict random hash 4:1 event cm \
                      extended thread device 2M fixed 3s spread";
        for base in bases.split(' ') {
            let one = Settings::from([base.split_once('=').unwrap()]);
            for value in values.split(' ') {
                let mut other = one.clone();
                let is_read = row.read(&mut other, value).is_ok() && !row.is_equal(&one, &other);
                if is_read && row.tells(&one) && row.tells(&other) {
                    return [one, other];
                }
            }
        }
        panic!("no two values of --{}", row.flag)
    }

    #[test]
    fn each_setting_that_differs_is_found_and_has_a_heading() {
        for row in ROWS {
            let both = apart(row);
            assert_eq!(flags(differing(&both)), [row.flag]);
            assert_eq!(flags(telling_apart(&both)), [row.flag]);
            assert!(!row.heading_of_column().is_empty());
            let mut others = ROWS.iter().filter(|it| it.field != row.field);
            let is_alone = others.all(|it| it.heading_of_column() != row.heading_of_column());
            assert!(is_alone, "two columns `{}`", row.heading_of_column());
        }
        assert!(differing(&[]).is_empty() && differing(&[Settings::from([])]).is_empty());
    }

    #[test]
    fn what_does_not_apply_does_not_differ() {
        let mut closed = Settings::from([("seed", "1")]);
        let open = Settings::from([("rate", "2M"), ("seed", "7")]);
        closed.signal_every = open.signal_every;
        assert_eq!(flags(differing(&[closed, open])), ["rate"]);
    }

    #[test]
    fn what_follows_from_others_is_told_where_they_do_not_tell_it() {
        let with = |size, signal| match signal {
            "" => Settings::from([("op", "write"), ("size", size), ("no-latency", "true")]),
            signal => Settings::from([("op", "write"), ("size", size), ("signal-every", signal)]),
        };
        let fitted = [with("64", ""), with("64K", "")];
        assert_ne!(fitted[0].signal_every, fitted[1].signal_every);
        assert_eq!(flags(telling_apart(&fitted)), ["size"]);
        assert_eq!(flags(differing(&fitted)), ["size", "signal-every"]);
        let asked = [with("64", "1"), with("64", "2"), with("64K", "1")];
        assert_eq!(flags(telling_apart(&asked)), ["size", "signal-every"]);
        let timed = ["64", "64K"].map(|size| Settings::from([("size", size)]));
        assert_eq!(flags(differing(&timed)), ["size"]);
        let depths = ["16", "64"].map(|depth| Settings::from([("tx-depth", depth)]));
        assert_eq!(flags(telling_apart(&depths)), ["tx-depth"]);
    }

    #[test]
    fn cells_say_where_a_setting_is_none() {
        let cell = |flag: &str, settings: &Settings| Settings::row(flag).unwrap().cell(settings);
        let write = Settings::from([("op", "write")]);
        assert_eq!(cell("rx-depth", &write), "-");
        assert_eq!(cell("mtu", &write), "auto");
        assert_eq!(cell("size", &write), "64KiB");
    }

    #[test]
    fn only_what_was_asked_for_is_unusual() {
        assert_eq!(flags(Settings::from([("size", "64")]).unusual()), ["size"]);
        let asked = [("qps", "4"), ("signal-every", "2"), ("duration", "1"), ("poll", "event")];
        let told = ["qps", "signal-every", "poll", "duration"];
        assert_eq!(flags(Settings::from(asked).unusual()), told);
        let srq = Settings::from([("recv-queue", "shared"), ("qps", "64")]);
        assert_eq!(flags(srq.unusual()), ["qps", "recv-queue"]);
    }
}
