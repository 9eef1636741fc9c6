use super::*;

#[test]
fn names_are_unique() {
    for (index, row) in ROWS.iter().enumerate() {
        for other in &ROWS[..index] {
            assert!(row.flag != other.flag && row.field != other.field);
            let is_alone = row.short.is_none() || row.short != other.short;
            assert!(is_alone, "{}", row.flag);
            assert!(row.alias.is_empty() || row.alias != other.flag);
        }
    }
}

/// What the help says is the default is the default.
#[test]
fn defaults_are_as_told() {
    let mut usual = Settings::default();
    usual.fit();
    for row in ROWS {
        let told = row.default.split(',').next().unwrap();
        let mut read = Settings::default();
        match row.read(&mut read, told) {
            Ok(()) if !told.is_empty() => assert!(row.is_equal(&usual, &read), "{}", row.flag),
            // Words for what the case or the device decides.
            _ => assert!(
                row.text(&Settings::default()).is_empty()
                    || row.takes == Takes::Switch
                    || row.flag == "signal-every",
                "{}",
                row.flag
            ),
        }
    }
}

#[test]
fn values_are_read_back_and_ranges_end_where_they_say() {
    let mut settings = Settings::default();
    settings.fit();
    for row in ROWS {
        let mut copy = settings.clone();
        row.copy(&mut copy, &settings);
        assert_eq!(copy, settings, "{}", row.flag);
    }
    for row in ROWS.iter().filter(|row| row.range != Row::USUAL.range) {
        let (min, max) = row.range;
        for value in [min, max] {
            row.read(&mut settings, &value.to_string()).unwrap();
            assert!(!row.text(&settings).is_empty());
        }
        let before = settings.clone();
        for value in [min.checked_sub(1), Some(max + 1)].into_iter().flatten() {
            let read = row.read(&mut settings, &value.to_string());
            assert!(read.is_err(), "--{} {value}", row.flag);
        }
        assert_eq!(settings, before);
    }
}

#[test]
fn a_dscp_makes_the_traffic_class_and_lets_switches_mark() {
    let of = |flag, text| Settings::from([(flag, text)]).traffic_class;
    assert_eq!([of("dscp", "26"), of("dscp", "0"), of("traffic-class", "104")], [106, 2, 104]);
}

#[test]
fn settings_travel_whole() {
    let mut settings = Settings::default();
    settings.fit();
    let text = serde_json::to_string(&settings).unwrap();
    assert_eq!(serde_json::from_str::<Settings>(&text).unwrap(), settings);
    for row in ROWS {
        let name = format!("\"{}\":", row.field);
        assert!(text.contains(&name), "{name}");
    }
}
