//! Processors: the kinds of cores that this machine has, their names, and what sets their frequencies.
//!
//! GB10 has two kinds (its smaller cores come first), as have Intel's hybrid processors.

use std::cmp::Reverse;
use std::fs;
use std::path::Path;

use crate::host::text;
use crate::threads::CoreList;

/// Cores of one model; of a hybrid processor those of one half.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreKind {
    /// The model; of ARM64 the design, such as `Neoverse V2`. `None` where the kernel does not say.
    pub name: Option<String>,
    /// The kernel's numbers of them, ascending, as `--cores` takes them.
    pub cores: CoreList,
}

/// The kinds of cores that are online, by the files below `root`, the fastest first; none where `/proc/cpuinfo` is hidden.
pub fn core_kinds(root: &Path) -> Vec<CoreKind> {
    let cpuinfo = fs::read_to_string(root.join("proc/cpuinfo")).unwrap_or_default();
    let hybrid = HYBRID.map(|(folder, words)| {
        let list = text(&root.join(format!("sys/devices/{folder}/cpus")));
        (list.and_then(|list| list.parse::<CoreList>().ok()), words)
    });
    let mut kinds: Vec<CoreKind> = Vec::new();
    for (core, model) in cores_with_models(&cpuinfo) {
        let part = hybrid.iter().find_map(|(list, words)| {
            list.as_ref().is_some_and(|list| list.0.contains(&core)).then_some(*words)
        });
        let name = match (model, part) {
            (Some(model), Some(part)) => Some(format!("{model} {part}")),
            (model, _) => model,
        };
        match kinds.iter_mut().find(|kind| kind.name == name) {
            Some(kind) => kind.cores.0.push(core),
            None => kinds.push(CoreKind { name, cores: CoreList(vec![core]) }),
        }
    }
    kinds.sort_by_cached_key(|kind| {
        Reverse(kind.cores.0.iter().filter_map(|core| speed(root, *core)).max())
    });
    kinds
}

/// Lists of the cores of Intel's hybrid processors, which share one model's name.
const HYBRID: [(&str, &str); 3] = [
    ("cpu_core", "performance cores"),
    ("cpu_atom", "efficiency cores"),
    ("cpu_lowpower", "low-power cores"),
];

/// How fast a core is beside others of its machine: the kernel's capacity, of 1024 for the fastest, or where it has none the highest
/// frequency.
fn speed(root: &Path, core: usize) -> Option<u64> {
    let folder = root.join(format!("sys/devices/system/cpu/cpu{core}"));
    ["cpu_capacity", "cpufreq/cpuinfo_max_freq"]
        .into_iter()
        .find_map(|file| text(&folder.join(file))?.parse().ok())
}

/// These cores, those of the fastest kind first; in their order where all are of one kind.
pub fn fastest_first(root: &Path, mut cores: Vec<usize>) -> Vec<usize> {
    let kinds = core_kinds(root);
    if kinds.len() > 1 {
        cores.sort_by_cached_key(|core| {
            let rank = kinds.iter().position(|kind| kind.cores.0.contains(core));
            rank.unwrap_or(kinds.len())
        });
    }
    cores
}

/// The model of all cores, or how many there are of each kind: `10 × Cortex-X925 (5-9,15-19) and …`.
pub(crate) fn models_text(kinds: &[CoreKind]) -> Option<String> {
    if let [kind] = kinds {
        return kind.name.clone();
    }
    let texts: Vec<String> = kinds
        .iter()
        .map(|CoreKind { name, cores }| {
            format!("{} × {} ({cores})", cores.0.len(), name.as_deref().unwrap_or("unknown"))
        })
        .collect();
    (!texts.is_empty()).then(|| texts.join(" and "))
}

/// The frequency governor of the cores that this process may use; `performance (4-7), powersave (0-3)` where they differ.
pub(crate) fn governors_text(root: &Path, kinds: &[CoreKind]) -> Option<String> {
    let allowed: Option<CoreList> = text(&root.join("proc/self/status")).and_then(|status| {
        status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?.trim().parse().ok()
    });
    let mut by_name: Vec<(String, CoreList)> = Vec::new();
    for &core in kinds.iter().flat_map(|kind| &kind.cores.0) {
        let file = root.join(format!("sys/devices/system/cpu/cpu{core}/cpufreq/scaling_governor"));
        if allowed.as_ref().is_none_or(|allowed| allowed.0.contains(&core))
            && let Some(name) = text(&file)
        {
            match by_name.iter_mut().find(|(known, _)| *known == name) {
                Some((_, cores)) => cores.0.push(core),
                None => by_name.push((name, CoreList(vec![core]))),
            }
        }
    }
    match by_name.as_slice() {
        [] => None,
        [(name, _)] => Some(name.clone()),
        many => {
            let texts: Vec<_> =
                many.iter().map(|(name, cores)| format!("{name} ({cores})")).collect();
            Some(texts.join(", "))
        }
    }
}

/// The cores of `/proc/cpuinfo`, each with its model if there is one.
fn cores_with_models(cpuinfo: &str) -> Vec<(usize, Option<String>)> {
    let mut cores = Vec::new();
    let (mut implementer, mut model) = (None, None);
    // From the end: a core's number stands before what is said of it.
    for (key, text) in cpuinfo.lines().rev().filter_map(|line| line.split_once(':')) {
        let value = text.trim();
        match key.trim() {
            // Of a 32-bit process on ARM64 too: then it says less than the numbers.
            "model name" => model = model.or(Some(value.to_owned())),
            "CPU part" => model = Some(value.to_owned()),
            "CPU implementer" => implementer = Some(value.to_owned()),
            "processor" => {
                let name = match (implementer.take(), model.take()) {
                    (Some(maker), Some(part)) => Some(arm_name(&maker, &part)),
                    (_, model) => model,
                };
                cores.extend(value.parse().ok().map(|core: usize| (core, name)));
            }
            _ => {}
        }
    }
    cores.reverse();
    cores
}

/// The name of an ARM core; its numbers where it is not in the table.
fn arm_name(implementer: &str, part: &str) -> String {
    let [implementer_number, part_number] = [implementer, part].map(|text| {
        text.strip_prefix("0x").and_then(|digits| u32::from_str_radix(digits, 16).ok())
    });
    let numbers = implementer_number.zip(part_number);
    let known = ARM_NAMES.iter().find(|known| numbers == Some((known.0, known.1)));
    known.map_or_else(
        || format!("ARM implementer {implementer} part {part}"),
        |(.., name)| (*name).to_owned(),
    )
}

/// Implementer and part of `MIDR_EL1`, and the name: of hosts that adapters are put into.
const ARM_NAMES: [(u32, u32, &str); 42] = [
    (0x41, 0xd03, "Cortex-A53"),
    (0x41, 0xd04, "Cortex-A35"),
    (0x41, 0xd05, "Cortex-A55"),
    (0x41, 0xd07, "Cortex-A57"),
    (0x41, 0xd08, "Cortex-A72"),
    (0x41, 0xd09, "Cortex-A73"),
    (0x41, 0xd0a, "Cortex-A75"),
    (0x41, 0xd0b, "Cortex-A76"),
    (0x41, 0xd0c, "Neoverse N1"),
    (0x41, 0xd0d, "Cortex-A77"),
    (0x41, 0xd40, "Neoverse V1"),
    (0x41, 0xd41, "Cortex-A78"),
    (0x41, 0xd42, "Cortex-A78AE"),
    (0x41, 0xd44, "Cortex-X1"),
    (0x41, 0xd46, "Cortex-A510"),
    (0x41, 0xd47, "Cortex-A710"),
    (0x41, 0xd48, "Cortex-X2"),
    (0x41, 0xd49, "Neoverse N2"),
    (0x41, 0xd4a, "Neoverse E1"),
    (0x41, 0xd4b, "Cortex-A78C"),
    (0x41, 0xd4d, "Cortex-A715"),
    (0x41, 0xd4e, "Cortex-X3"),
    (0x41, 0xd4f, "Neoverse V2"),
    (0x41, 0xd80, "Cortex-A520"),
    (0x41, 0xd81, "Cortex-A720"),
    (0x41, 0xd82, "Cortex-X4"),
    (0x41, 0xd83, "Neoverse V3AE"),
    (0x41, 0xd84, "Neoverse V3"),
    (0x41, 0xd85, "Cortex-X925"),
    (0x41, 0xd87, "Cortex-A725"),
    (0x41, 0xd8e, "Neoverse N3"),
    (0x42, 0x516, "ThunderX2"),
    (0x43, 0x0af, "ThunderX2"),
    (0x46, 0x001, "A64FX"),
    (0x48, 0xd01, "Kunpeng 920"),
    (0x4e, 0x004, "NVIDIA Carmel"),
    (0x61, 0x022, "Apple Icestorm (M1)"),
    (0x61, 0x023, "Apple Firestorm (M1)"),
    (0x61, 0x032, "Apple Blizzard (M2)"),
    (0x61, 0x033, "Apple Avalanche (M2)"),
    (0xc0, 0xac3, "Ampere-1"),
    (0xc0, 0xac4, "Ampere-1a"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::tests::machine;

    fn arm_cpuinfo(parts: &[&str]) -> String {
        let block = |(core, part)| {
            format!("processor\t: {core}\nCPU implementer\t: 0x41\nCPU part\t: {part}\n\n")
        };
        parts.iter().enumerate().map(block).collect()
    }

    #[test]
    fn the_faster_kind_comes_first_whatever_its_numbers() {
        let cpuinfo = arm_cpuinfo(&["0xd87", "0xd87", "0xd85", "0xd85", "0xd87"]);
        let by_capacity = [("cpu0/cpu_capacity", "718\n"), ("cpu2/cpu_capacity", "1024\n")];
        let by_frequency = [
            ("cpu0/cpufreq/cpuinfo_max_freq", "2808000\n"),
            ("cpu2/cpufreq/cpuinfo_max_freq", "3900000\n"),
        ];
        for speeds in [by_capacity, by_frequency] {
            let files = speeds.map(|(file, text)| (format!("sys/devices/system/cpu/{file}"), text));
            let root = machine(&[
                ("proc/cpuinfo", &cpuinfo),
                (&files[0].0, files[0].1),
                (&files[1].0, files[1].1),
            ]);
            let kinds = core_kinds(root.path());
            let words = "2 × Cortex-X925 (2-3) and 3 × Cortex-A725 (0-1,4)";
            assert_eq!(models_text(&kinds).as_deref(), Some(words));
            assert_eq!(fastest_first(root.path(), vec![0, 1, 2, 3, 4, 9]), [2, 3, 0, 1, 4, 9]);
            assert_eq!(fastest_first(root.path(), vec![4, 3]), [3, 4]);
        }
    }

    #[test]
    fn cores_of_one_kind_keep_their_order() {
        let root = machine(&[
            ("proc/cpuinfo", &arm_cpuinfo(&["0xd4f", "0xd4f"])),
            ("sys/devices/system/cpu/cpu0/cpu_capacity", "1000\n"),
            ("sys/devices/system/cpu/cpu1/cpu_capacity", "1024\n"),
        ]);
        assert_eq!(models_text(&core_kinds(root.path())).as_deref(), Some("Neoverse V2"));
        for small_machine in [root, machine(&[])] {
            assert_eq!(fastest_first(small_machine.path(), vec![0, 1]), [0, 1]);
        }
    }

    #[test]
    fn halves_of_a_hybrid_processor_are_kinds() {
        let cpuinfo: String =
            (0..3).map(|core| format!("processor : {core}\nmodel name : Ultra 9\n\n")).collect();
        let root = machine(&[
            ("proc/cpuinfo", &cpuinfo),
            ("sys/devices/cpu_core/cpus", "2\n"),
            ("sys/devices/cpu_atom/cpus", "0-1\n"),
            ("sys/devices/system/cpu/cpu1/cpufreq/cpuinfo_max_freq", "4600000\n"),
            ("sys/devices/system/cpu/cpu2/cpufreq/cpuinfo_max_freq", "5700000\n"),
        ]);
        let words = "1 × Ultra 9 performance cores (2) and 2 × Ultra 9 efficiency cores (0-1)";
        assert_eq!(models_text(&core_kinds(root.path())).as_deref(), Some(words));
    }

    #[test]
    fn cores_without_a_name_are_there_too() {
        for (cpuinfo, words) in [
            (
                "processor : 0\nCPU implementer : 0x41\nCPU part : 0xfff\n",
                Some("ARM implementer 0x41 part 0xfff"),
            ),
            (
                "processor : 0\nCPU implementer : 0x61\nCPU part : 0x023\n",
                Some("Apple Firestorm (M1)"),
            ),
            ("processor : 0\nmodel name : EPYC\n", Some("EPYC")),
            ("processor : 0\nprocessor : 1\n", None),
            ("", None),
        ] {
            let root = machine(&[("proc/cpuinfo", cpuinfo)]);
            assert_eq!(models_text(&core_kinds(root.path())).as_deref(), words, "{cpuinfo}");
        }
        let root = machine(&[("proc/cpuinfo", "processor : 0\nprocessor : 1\n")]);
        assert_eq!(core_kinds(root.path())[0].cores.0, [0, 1]);
    }

    #[test]
    fn governors_are_those_of_the_cores_in_use() {
        let governor = |core| format!("sys/devices/system/cpu/cpu{core}/cpufreq/scaling_governor");
        let (first, second) = (governor(0), governor(1));
        for (allowed, words) in [
            ("0-1", Some("powersave (0), performance (1)")),
            ("1-7", Some("performance")),
            ("2", None),
        ] {
            let status = format!("Name: x\nCpus_allowed_list:\t{allowed}\n");
            let root = machine(&[
                ("proc/cpuinfo", "processor : 0\nprocessor : 1\nprocessor : 2\n"),
                ("proc/self/status", &status),
                (&first, "powersave\n"),
                (&second, "performance\n"),
            ]);
            let governors = governors_text(root.path(), &core_kinds(root.path()));
            assert_eq!(governors.as_deref(), words, "{allowed}");
        }
    }
}
