//! The options of perftest's bandwidth and latency programs, and how rocebench's command line says the same.
//!
//! They are those of perftest 6.29 (`long_options` and the usage in `src/perftest_parameters.c`), and the few that only
//! 4.5 has. The options of `raw_ethernet_*`, which make packets of their own, are not among them.

use std::sync::LazyLock;

use Here::{Already, Flag, Ipv6, Not, OneOf, Prefixed, Printed, Rate, Setting, Unchanged};

#[derive(Clone, Copy, Debug)]
pub struct PerftestOption {
    pub letter: Option<char>,
    /// Its long name, without dashes.
    pub name: &'static str,
    /// Another long name: of an older version, or one that the usage alone has.
    pub other_name: Option<&'static str>,
    /// What its value is called; `None` for one without a value.
    pub value: Option<&'static str>,
    pub here: Here,
}

/// What an option of perftest is in rocebench.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Here {
    /// The same option, whatever the command.
    Unchanged,
    /// This flag, with the value of the option, if it takes one.
    Flag(&'static str),
    /// This flag with this value.
    Setting(&'static str, &'static str),
    /// This flag, with these letters and the value of the option.
    Prefixed(&'static str, &'static str),
    /// By its value; another value is refused, with this sentence.
    OneOf(&'static [(&'static str, Meaning)], &'static str),
    /// A form of perftest's output, where one of its programs is named; otherwise the other.
    Printed(Output, &'static Here),
    /// IPv6, of the control connection and so of the GID.
    Ipv6,
    /// With the others an offered load.
    Rate(RateLimit),
    /// Nothing: what it asks for is so in any case. The sentence says how.
    Already(&'static str),
    /// Refused: the sentence says what to do instead, or that there is nothing.
    Not(&'static str),
}

/// What an option says of the output of a program of perftest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Bandwidth in 10^9 bits a second.
    Gbits,
    /// The peak is left at 0.
    WithoutPeak,
    /// A column of CPU time.
    Cpu,
    /// JSON, in the file that has its name by default, or in another.
    Json,
    JsonFile,
    /// One figure alone, without the table.
    Only,
    /// A row for each period, until it is ended.
    Endless,
    /// Bandwidth, and message rate, that one row has to reach.
    LeastBandwidth,
    LeastMessageRate,
}

/// A part of perftest's limit of the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateLimit {
    Value,
    Units,
    Kind,
}

/// What one value of an option means: a flag and its value, or `None` for what is so in any case.
pub type Meaning = Option<(&'static str, &'static str)>;

impl PerftestOption {
    /// The option of this letter.
    pub fn of_letter(letter: char) -> Option<&'static PerftestOption> {
        OPTIONS.iter().find(|it| it.letter == Some(letter))
    }

    /// The option of this long name, without dashes.
    pub fn of_name(name: &str) -> Option<&'static PerftestOption> {
        OPTIONS.iter().find(|it| it.name == name || it.other_name == Some(name))
    }

    /// The only option whose long name begins so, by which getopt takes it too.
    pub fn beginning(name: &str) -> Option<&'static PerftestOption> {
        let mut found = OPTIONS.iter().filter(|it| it.name.starts_with(name));
        found.next().filter(|_| found.next().is_none())
    }

    const fn or(self, other_name: &'static str) -> PerftestOption {
        PerftestOption { other_name: Some(other_name), ..self }
    }

    const fn with(self, value: &'static str) -> PerftestOption {
        PerftestOption { value: Some(value), ..self }
    }
}

/// An option with a letter.
const fn both(letter: char, name: &'static str, here: Here) -> PerftestOption {
    PerftestOption { letter: Some(letter), ..long(name, here) }
}

/// An option without a letter.
const fn long(name: &'static str, here: Here) -> PerftestOption {
    PerftestOption { letter: None, name, other_name: None, value: None, here }
}

/// What `-a` runs: the powers of two from 2 to 2^23.
const ALL_SIZES: &str =
    "2,4,8,16,32,64,128,256,512,1K,2K,4K,8K,16K,32K,64K,128K,256K,512K,1M,2M,4M,8M";

const SERVICES: &str = "give RC, UC or UD; rocebench has no XRC, DC or SRD QPs";
const ATOMICS: &str = "give FETCH_AND_ADD or CMP_AND_SWAP";
const HISTOGRAMS: &str = "`--csv-histograms FILE` has all latencies, as the buckets of a histogram";
const CPU_TIME: &Here = &Already("the result has the CPU time of the workers and of the machine");
const FAIL_BELOW: &Here = &Not("`--fail-below 40Gb` exits with status 1 when a flow is slower");
const FAIL_IF: &Here = &Not("`--fail-if 'mmsg<2'` exits with status 1 when a flow is slower");
const REPEAT: &Here = &Not("`-D` takes up to 720h; `--runs 1000` repeats a run");
const JSON: &Here = &Not("`--json FILE` writes the result in rocebench's own form");
const PORTS: &str = "a file with a `[[flow]]` for each port has figures of each; `from-device` and `from-ib-port` name it";
const MULTICAST: &str = "there is no multicast; `--service ud` sends datagrams from QP to QP";

/// All of them: first those with a letter or a flag here, then what is so in any case, then perftest's output, then what
/// is refused.
pub static OPTIONS: LazyLock<Vec<PerftestOption>> = LazyLock::new(|| {
    let refused = REFUSED.iter().flat_map(|(options, sentence)| {
        options.split(", ").map(|option| match option.split_once(' ') {
            Some((name, value)) => long(name, Not(sentence)).with(value),
            None => long(option, Not(sentence)),
        })
    });
    ONE_BY_ONE.iter().copied().chain(refused).collect()
});

/// Those without a letter that are refused, with their values, and the sentence.
const REFUSED: &[(&str, &str)] = &[
    ("connectionless", MULTICAST),
    ("report-per-port", PORTS),
    ("cqe_poll N", "a poll asks for 32 completions"),
    ("dont_xchg_versions", "both ends check that they speak one protocol; `--mtu` chooses the MTU"),
    ("latency_gap TIME", "`--rate 100K --arrivals fixed` plans a message each 10 us"),
    ("payload_file_path FILE", "`--verify` fills payloads with a pattern of its own"),
    (
        "numa_node N, disable_numa",
        "`--cores LIST` names the cores; without it they are those of the device's NUMA node",
    ),
    (
        "burst_size N, typical_pkt_size BYTES",
        "the device's driver spreads messages within the limit",
    ),
    (
        "reversed",
        "a file with a `[[flow]]` whose `from` is \"server\" turns the direction; so does `--op read`",
    ),
    ("unsolicited_write", "a WRITE with immediate data uses up a receive"),
    (
        "inline_recv BYTES, congest_type TYPE, cpu_id N, no_enhanced_reorder, no_lock, ph N, tph_mem TYPE, use_ooo",
        "the driver's default is used",
    ),
    ("dlid LID, force-link TYPE", "paths come from the ports and the other end"),
    ("log_dci_streams N, log_active_dci_streams N", "rocebench has no DC QPs"),
    (
        "aes_block_size BYTES, aes_xts, credentials_path FILE, data_enc_key_app_path FILE, data_enc_keys_number N, \
         encrypt_on_tx, kek_path FILE, sig_before, sig_offload",
        "the device's encryption and signatures are not used",
    ),
    (
        "cuda_mem_type TYPE, gpu_touch HOW, mmap FILE, mmap-offset BYTES, odp, opencl_platform_id ID, use-null-mr, \
         use_cuda_bus_id ID, use_cuda_pcie_mapping, use_data_direct, use_hl ID, use_ib_dm_dmabuf NAME, use_mlu ID, \
         use_mlu_dmabuf, use_musa ID, use_musa_bus_id ID, use_musa_dmabuf, use_musa_pcie_mapping, use_neuron ID, \
         use_neuron_dmabuf, use_opencl ID",
        "`--memory-at` names what messages can lie in: the host's memory, a dmabuf, a GPU of CUDA or ROCm",
    ),
];

const ONE_BY_ONE: &[PerftestOption] = &[
    both('a', "all", Setting("size", ALL_SIZES)),
    both('A', "atomic_type", OneOf(ATOMIC_TYPES, ATOMICS)).with("TYPE"),
    both('b', "bidirectional", Flag("bidirectional")),
    both('c', "connection", OneOf(CONNECTION_TYPES, SERVICES)).with("TYPE"),
    both('d', "ib-dev", Flag("device")).with("NAME"),
    both('D', "duration", Flag("duration")).with("SECONDS"),
    both('e', "events", Setting("poll", "event")),
    both('h', "help", Unchanged),
    both('i', "ib-port", Flag("ib-port")).with("N"),
    both('I', "inline_size", Flag("inline")).with("BYTES"),
    both('l', "post_list", Flag("post-list")).with("N"),
    both('L', "hop_limit", Flag("hop-limit")).with("N"),
    both('m', "mtu", Flag("mtu")).with("BYTES"),
    both('n', "iters", Flag("iters")).with("N"),
    both('o', "outs", Flag("max-rd-atomic")).with("N"),
    both('p', "port", Flag("port")).with("PORT"),
    both('q', "qp", Flag("qps")).with("N"),
    both('Q', "cq-mod", Flag("signal-every")).with("N"),
    both('r', "rx-depth", Flag("rx-depth")).with("N"),
    both('R', "rdma_cm", Setting("connect", "cm")),
    both('s', "size", Flag("size")).with("BYTES"),
    both('S', "sl", Flag("service-level")).with("N"),
    both('t', "tx-depth", Flag("tx-depth")).with("N"),
    both('T', "tos", Flag("traffic-class")).with("N"),
    both('u', "qp-timeout", Flag("timeout")).with("N"),
    both('V', "version", Unchanged),
    both('x', "gid-index", Flag("gid-index")).with("N"),
    long("bind_source_ip", Flag("bind")).with("ADDRESS").or("source_ip"),
    long("data_validation", Flag("verify")),
    long("disable_pcie_relaxed", Setting("ordering", "strict")),
    long("flow_label", Flag("flow-label")).with("LIST"),
    long("mr_per_qp", Setting("mr", "per-qp")),
    long("pin_cores", Flag("cores")).with("LIST"),
    long("pkey_index", Flag("pkey-index")).with("N"),
    long("retry_count", Flag("retry-cnt")).with("N"),
    long("send_with_imm", Setting("op", "send-imm")),
    long("tclass", Flag("traffic-class")).with("N"),
    long("use_hugepages", Setting("memory-at", "huge")),
    long("use_cuda", Prefixed("memory-at", "cuda:")).with("ID"),
    long("use_cuda_dmabuf", Setting("register", "dmabuf")),
    long("use_rocm", Prefixed("memory-at", "rocm:")).with("ID"),
    long("use_rocm_dmabuf", Setting("register", "dmabuf")),
    long("use-srq", Setting("recv-queue", "shared")),
    long("write_with_imm", Setting("op", "write-imm")),
    long("rate_limit", Rate(RateLimit::Value)).with("RATE"),
    long("rate_limit_type", Rate(RateLimit::Kind)).with("TYPE"),
    long("rate_units", Rate(RateLimit::Units)).with("UNITS"),
    long("ipv6", Ipv6),
    long("ipv6-addr", Ipv6),
    both(
        'F',
        "CPU-freq",
        Already("rocebench runs at any CPU frequency; `rocebench doctor` warns about it"),
    ),
    both('W', "report-counters", Already("the JSON result has the used ports' counters"))
        .with("LIST"),
    long("data_validation_debug", Already("a mismatch names QP, message and byte")),
    long("disable_dynamic_polling", Already("each poll asks for the same number of completions")),
    long("perform_warm_up", Already("each run warms up, as `--warmup` says")),
    long("report-both", Already("each direction of `-b` has its own figures")),
    long("use_old_post_send", Already("WRs are posted by `ibv_post_send`")),
    both(
        'z',
        "comm_rdma_cm",
        Already("the ends talk over TCP; `--connect cm` connects QPs by rdma_cm"),
    )
    .or("com_rdma_cm"),
    long("wait_destroy", Already("a run destroys its objects when it ends")).with("SECONDS"),
    long("recv_post_list", Already("receives are posted as batches complete")).with("N"),
    both('N', "noPeak", Printed(Output::WithoutPeak, &Already("rocebench computes no peak"))),
    long("cpu_util", Printed(Output::Cpu, CPU_TIME)),
    long("report_gbits", Printed(Output::Gbits, &Already("bandwidth is in 10^9 bits a second"))),
    both('w', "limit_bw", Printed(Output::LeastBandwidth, FAIL_BELOW)).with("VALUE"),
    both('y', "limit_msgrate", Printed(Output::LeastMessageRate, FAIL_IF)).with("VALUE"),
    long("out_json", Printed(Output::Json, JSON)),
    long("out_json_file", Printed(Output::JsonFile, JSON)).with("FILE"),
    long("output", Printed(Output::Only, &Not("`--csv -` prints figures and nothing else")))
        .with("UNITS"),
    long("run_infinitely", Printed(Output::Endless, REPEAT)),
    both('C', "report-cycles", Not("latencies are in units of time")),
    both(
        'f',
        "margin",
        Not("`--warmup 2s` sets the time before the window; nothing is cut off at its end"),
    )
    .with("SECONDS"),
    both('g', "mcg", Not(MULTICAST)),
    both('M', "MGID", Not(MULTICAST)).with("GID"),
    both('H', "report-histogram", Not(HISTOGRAMS)).or("report-histogrm"),
    both('U', "report-unsorted", Not(HISTOGRAMS)),
    both('O', "dualport", Not(PORTS)),
    both('X', "vector", Not("with `--poll event` each worker has a completion vector, in turn"))
        .with("N"),
];

const CONNECTION_TYPES: &[(&str, Meaning)] =
    &[("RC", None), ("UC", Some(("service", "uc"))), ("UD", Some(("service", "ud")))];

const ATOMIC_TYPES: &[(&str, Meaning)] =
    &[("FETCH_AND_ADD", Some(("op", "fetch-add"))), ("CMP_AND_SWAP", Some(("op", "compare-swap")))];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_spelling_is_one_options() {
        let mut seen = std::collections::HashSet::new();
        for option in OPTIONS.iter() {
            let names = [Some(option.name), option.other_name];
            for spelling in names
                .into_iter()
                .flatten()
                .map(str::to_owned)
                .chain(option.letter.map(String::from))
            {
                assert!(seen.insert(spelling), "{option:?}");
            }
        }
    }

    #[test]
    fn values_are_where_they_are_needed() {
        for option in OPTIONS.iter() {
            let is_sound = match option.here {
                OneOf(..) | Prefixed(..) => option.value.is_some(),
                Setting(..) | Unchanged => option.value.is_none(),
                Flag(_) | Already(_) | Not(_) | Rate(_) | Ipv6 | Printed(..) => true,
            };
            assert!(is_sound, "{option:?}");
        }
    }
}
