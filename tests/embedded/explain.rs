//! `rocebench explain` on the embedded device: each operation, each mistake, both languages, a server of its own.

use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr as _;

use testing::process::Signal;
use testing::program::{Server, call};
use testing::sessions::Wire;

#[test]
fn a_whole_lesson() {
    let ended = call("explain -d soft0 --op write --text Hello").run().exits(0);
    assert!(ended.stderr().is_empty(), "{}", ended.stderr());
    assert!(!ended.stdout.contains('\x1b'), "colours in a pipe");
    insta::assert_snapshot!("a_whole_lesson", masked(&ended.stdout));
}

#[test]
fn chinese_lines_up_and_is_whole() {
    for words in ["--op write", "--op read", "--break gid"] {
        let [chinese, english] = ["zh", "en"].map(|language| {
            let words = format!("explain -d soft0 --lang {language} {words}");
            call(&words).passes().stdout
        });
        let is_broken = words.contains("--break");
        for word in ["对端", "INIT → RTR", "注意："] {
            assert!(chinese.contains(word), "no {word} in {chinese}");
        }
        assert_eq!(chinese.contains("故意出错："), is_broken, "{words}");
        assert_eq!(english.contains("On purpose"), is_broken, "{words}");
        assert!(!chinese.contains("On purpose"), "{words}");
        for word in ["Careful", "other end", "Memory of", "after the post"] {
            assert!(english.contains(word), "no {word} in {english}");
            assert!(!chinese.contains(word), "{word} in {chinese}");
        }
        for stdout in [&chinese, &english] {
            let widest = stdout.lines().map(unicode_width::UnicodeWidthStr::width).max().unwrap();
            assert!(widest <= 100, "{widest} columns: {stdout}");
        }
        // The values of both ends stand one below the other.
        let columns: Vec<usize> = chinese
            .lines()
            .skip_while(|line| !line.contains("交换连接信息"))
            .skip_while(|line| !line.trim_start().starts_with("本端"))
            .skip(1)
            .take(3)
            .map(|line| line[..line.rfind("  ").unwrap() + 2].width())
            .collect();
        assert_eq!(columns, [columns[0]; 3], "{chinese}");
    }
}

#[test]
fn either_ends_death_is_noticed() {
    let server = Server::embedded("-d soft0");
    // Its packets are lost, so that it waits.
    let lost = format!("explain {} -d soft0 --faults drop=100%", server.name);
    let client = call(&lost).start();
    server.says(0, "  a lesson: ");
    client.signal(Signal::Kill);
    server.says(0, "session ended early");
    let next = format!("explain {} -d soft0", server.name);
    call(&next).passes();
    let waiting = call(&lost).start();
    server.program.has_said_times("  a lesson: ", 3);
    server.kill();
    waiting.wait().exits(1).says(&["closed the connection"]);
}

/// A device waits seconds for an answer: the commands wait beside each other.
#[test]
fn what_fails_where_all_packets_are_lost() {
    let [doctor, lesson, mistake] = ["doctor --quiet", "explain", "explain --break rkey"]
        .map(|words| call(&format!("{words} -d soft0 --faults drop=100%")).start());
    // A message does not arrive, and an error is not the expected one.
    lesson.wait().exits(1).says(&["the message did not arrive", "rocebench doctor"]);
    mistake.wait().exits(1).says(&["the error is not the expected one"]);
    let examined = doctor.wait().exits(1).says(&["3 checks found something broken"]);
    examined.shows(&["broken   transfer send", "why:", "try:"]);
    assert!(!examined.stdout.contains("\nok"), "{}", examined.stdout);
    assert!(examined.stdout.lines().all(|line| line.chars().count() <= 100));
}

#[test]
fn a_server_checks_what_it_is_asked_for() {
    let server = Server::embedded("-d soft0");
    let lesson = |change: fn(&mut Value)| {
        let mut body = json!({
            "op": "write", "mistake": null, "length_bytes": 5, "mtu_bytes": null, "offered": null
        });
        change(&mut body);
        let mut session = Wire::session(&server.name);
        session.say("lesson", "prepare", &body);
        session
    };
    type Change = fn(&mut Value);
    let wrongs: [(Change, &str); 3] = [
        (|it| it["length_bytes"] = 4097.into(), "1 to 4096 bytes"),
        (|it| it["mistake"] = "no-recv".into(), "cannot be made with write"),
        (|it| it["mtu_bytes"] = 1500.into(), "the MTU is none of"),
    ];
    for (change, says) in wrongs {
        let reason = lesson(change).abort();
        assert!(reason.contains(says), "{reason}");
    }
    let mut session = lesson(|_| ());
    session.say("lesson", "look", &Value::Null);
    session.is_closed();
    let log = server.end();
    assert!(log.contains("`lesson_look` instead of `lesson_endpoints`"), "{log}");
}

/// How far the rest of a remark is indented that does not fit on its line.
const REST_OF_A_REMARK: usize = 30;

/// Numbers that differ from run to run become `N`, and runs of spaces one. How long numbers are decides where remarks are
/// broken: those are joined.
fn masked(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        let words: Vec<String> = line.split_whitespace().map(masked_word).collect();
        let words = match words.join(" ").split_once(" after the post; ") {
            Some(_) => "N after the post; N polls before found the CQ empty".to_owned(),
            None => words.join(" "),
        };
        if let (true, Some(last)) = (indent >= REST_OF_A_REMARK, lines.last_mut()) {
            *last += &format!(" {words}");
            continue;
        }
        lines.push(" ".repeat(indent) + &words);
    }
    lines.join("\n").replace("+N ms", "+N µs")
}

fn masked_word(word: &str) -> String {
    let is_time = word.starts_with('+') && word.len() > 1;
    if let Some(start) = word.find("0x") {
        let digits = word[start + 2..]
            .find(|c: char| !c.is_ascii_hexdigit())
            .map_or(word.len(), |end| start + 2 + end);
        // Opcodes and syndromes have two digits and do not differ.
        if digits - start > 4 {
            return format!("{}0xN{}", &word[..start], &word[digits..]);
        }
    }
    match word.find("127.") {
        Some(start) => {
            let end = word[start..]
                .trim_end_matches('.')
                .find(|c: char| !(c.is_ascii_digit() || c == '.'))
                .map_or(word.trim_end_matches('.').len(), |end| start + end);
            format!("{}127.N{}", &word[..start], &word[end..])
        }
        None if is_time => "+N".to_owned(),
        None => word.to_owned(),
    }
}
