//! Results as perftest prints them, for the programs that read its output: its table, its JSON and a bare number. Names,
//! order and units are those of perftest 6.29, and so of 4.5 but for `MiB`, which 4.5 calls `MB`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use results::model::{CLIENT, CaseConfig, FlowResult, Latency, ResultFile, Run, SERVER, Totals};
use results::text::printable;
use results::whole_file::write_whole;
use serde_json::{Map, Value, json};
use settings::{CallStyle, ConnectMode, Op, Ordering, RecvQueue, Settings, Stop, Workload};

/// What perftest's options ask of its output.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Form {
    /// It is the server's output.
    pub is_server: bool,
    /// Bandwidth is in 10^9 bits a second, not in MiB a second.
    pub in_gbits: bool,
    /// A run ends when it is stopped: a row is of a period, and the whole has none.
    pub is_endless: bool,
    /// No peak is printed.
    pub without_peak: bool,
    /// There is a column of the machine's CPU time.
    pub with_cpu: bool,
    /// This figure is printed and nothing else.
    pub only: Option<Figure>,
    /// The file that has the last result as JSON.
    pub json: Option<PathBuf>,
    /// Bandwidth that one row at least has to reach, in its unit.
    pub least_bandwidth: Option<f64>,
    /// The same of the message rate, in 10^6 a second.
    pub least_mmsg_per_s: Option<f64>,
}

/// What `--output` prints alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    Bandwidth,
    MessageRate,
    Latency,
}

/// The file of `--out_json` without a name.
pub const JSON_FILE: &str = "perftest_out.json";

/// Most characters of a name from the other end.
const MOST_CHARACTERS: usize = 64;

const LINE: &str =
    "---------------------------------------------------------------------------------------";

/// perftest's output, row by row.
#[derive(Debug)]
pub struct PerftestTable<W> {
    out: W,
    form: Form,
    has_begun: bool,
    /// The best bandwidth and message rate of a row.
    best: [f64; 2],
}

impl<W: Write> PerftestTable<W> {
    pub fn new(out: W, form: Form) -> PerftestTable<W> {
        PerftestTable { out, form, has_begun: false, best: [0.0; 2] }
    }

    /// The server listens.
    ///
    /// # Errors
    /// The stream's.
    pub fn waits(&mut self) -> io::Result<()> {
        if self.form.only.is_none() {
            let stars = "*".repeat(36);
            writeln!(self.out, "\n{stars}\n* Waiting for client to connect... *\n{stars}")?;
        }
        self.out.flush()
    }

    /// A run that has figures.
    ///
    /// # Errors
    /// The stream's, or the JSON file's.
    pub fn run(&mut self, config: &CaseConfig, run: &Run, result: &ResultFile) -> io::Result<()> {
        let settings = config.flow(0);
        if self.form.is_endless && !self.form.is_server {
            return Ok(());
        }
        let Some(row) = Row::new(&self.form, &settings, run, result) else {
            return Ok(());
        };
        let facts = facts(&self.form, config, &settings, result);
        if self.form.only.is_none() && !self.has_begun {
            self.begin(&row, &facts, &settings)?;
        }
        self.has_begun = true;
        if let Figures::Bandwidth { average, mmsg_per_s, .. } = &row.figures {
            self.best = [self.best[0].max(*average), self.best[1].max(*mmsg_per_s)];
        }
        // The adapter alone answers READs and atomics: the server measures no latency.
        let is_shown = !self.form.is_server || settings.is_answered() || !settings.ping_pong;
        if is_shown {
            writeln!(self.out, "{}", row.text(&self.form))?;
            self.out.flush()?;
            if let Some(path) = &self.form.json {
                write_json(path, &self.form, &row, facts, &settings)?;
            }
        }
        Ok(())
    }

    /// A period of a run without an end, in which so much was moved.
    ///
    /// # Errors
    /// The stream's.
    pub fn period(&mut self, settings: &Settings, moved: &Totals) -> io::Result<()> {
        let flow = FlowResult { totals: moved.clone(), ..FlowResult::default() };
        let Some(figures) = bandwidth(&self.form, &[flow], false) else {
            return Ok(());
        };
        let (size_bytes, messages) = (settings.size_bytes, moved.messages);
        let row = Row { size_bytes, messages, figures, cpu_percent: 0.0 };
        if self.form.only.is_none() && !self.has_begun {
            let config = CaseConfig::from(settings.clone());
            let facts = facts(&self.form, &config, settings, &ResultFile::default());
            self.begin(&row, &facts, settings)?;
        }
        self.has_begun = true;
        writeln!(self.out, "{}", row.text(&self.form))?;
        self.out.flush()
    }

    /// What no row has reached that one had to; `None` before the first row.
    pub fn missed(&self) -> Option<&'static str> {
        let least = [self.form.least_bandwidth, self.form.least_mmsg_per_s];
        let mut pairs = least.iter().zip(&self.best).filter(|_| self.has_begun);
        let place = pairs.position(|(limit, best)| limit.is_some_and(|it| it > *best))?;
        Some(["BW result is below bw limit", "Msg rate is below msg_rate limit"][place])
    }

    /// No run follows.
    ///
    /// # Errors
    /// The stream's.
    pub fn end(&mut self) -> io::Result<()> {
        if self.has_begun && self.form.only.is_none() {
            writeln!(self.out, "{LINE}")?;
        }
        self.out.flush()
    }

    fn begin(&mut self, row: &Row, facts: &[Fact], settings: &Settings) -> io::Result<()> {
        writeln!(self.out, "{LINE}\n{:20}{}", "", title(settings))?;
        let shown: Vec<String> = facts.iter().filter_map(Fact::text).collect();
        let (pairs, single) = shown.split_at(OF_PAIRS.min(shown.len()));
        for pair in pairs.chunks(2) {
            writeln!(self.out, " {}", pair.join("\t\t"))?;
        }
        for text in single {
            writeln!(self.out, " {text}")?;
        }
        if settings.memory_at.has_gpu() {
            let (bytes, place) = (settings.size_bytes, settings.memory_at);
            writeln!(self.out, "allocated {bytes} bytes of GPU buffer at {place}")?;
        }
        let cpu = if self.form.with_cpu { "    CPU_Util[%]" } else { "" };
        writeln!(self.out, "{LINE}\n{}{cpu}", row.figures.head(&self.form))
    }
}

/// One row of the table.
#[derive(Debug)]
struct Row {
    size_bytes: u32,
    messages: u64,
    figures: Figures,
    cpu_percent: f64,
}

#[derive(Debug)]
enum Figures {
    /// In the unit of the form, and 10^6 messages a second.
    Bandwidth { peak: f64, average: f64, mmsg_per_s: f64 },
    /// Of a number of messages, in microseconds: min, max, median, mean, standard deviation, p99 and p99.9.
    Latency([f64; 7]),
    /// Of a time: the mean in microseconds, and messages a second.
    MeanLatency { mean_us: f64, per_second: f64 },
}

impl Row {
    /// Of a run; `None` if that has no figures.
    fn new(form: &Form, settings: &Settings, run: &Run, result: &ResultFile) -> Option<Row> {
        let flow = run.flows.first().filter(|_| run.failure.is_none())?;
        let is_counted = matches!(settings.stop(), Stop::MessagesPerQp(_));
        let figures = if !settings.ping_pong {
            bandwidth(form, &run.flows, is_counted)?
        } else if is_counted {
            Figures::Latency(latency_us(flow.latency_ns.as_ref()?))
        } else {
            let mean_us = flow.latency_ns.as_ref()?.mean / 1e3;
            Figures::MeanLatency { mean_us, per_second: flow.mmsg_per_s()? * 1e6 }
        };
        Some(Row {
            size_bytes: settings.size_bytes,
            messages: flow.totals.messages,
            figures,
            cpu_percent: cpu_percent(form.node(), flow.window.seconds, run, result),
        })
    }

    fn text(&self, form: &Form) -> String {
        let (size, messages) = (self.size_bytes, self.messages);
        let mut text = match (&self.figures, form.only) {
            (Figures::Bandwidth { mmsg_per_s, .. }, Some(Figure::MessageRate)) => {
                return format!("{mmsg_per_s:.6}");
            }
            (Figures::Bandwidth { average, .. }, Some(_)) => return format!("{average:.6}"),
            (Figures::Latency([_, _, _, mean, ..]), Some(_)) => return format!("{mean:.6}"),
            (Figures::MeanLatency { mean_us, .. }, Some(_)) => return format!("{mean_us:.6}"),
            (Figures::Bandwidth { peak, average, mmsg_per_s }, None) => {
                let digits = digits(form, *average);
                format!(
                    " {size:<7}    {messages:<10}       {peak:<7.digits$}            {average:<7.digits$}            {mmsg_per_s:<7.6}"
                )
            }
            (Figures::Latency([min, max, median, mean, deviation, p99, p99_9]), None) => format!(
                " {size:<7} {messages:<11}   {min:<7.2}        {max:<7.2}      {median:<7.2}          {mean:<7.2}        {deviation:<7.2}          \
                 {p99:<7.2}                {p99_9:<7.2}"
            ),
            (Figures::MeanLatency { mean_us, per_second }, None) => {
                format!(
                    " {size:<7}       {messages:<10}       {mean_us:<7.2}        {per_second:<7.2}"
                )
            }
        };
        if form.with_cpu {
            text += &format!("    {:<3.2}", self.cpu_percent);
        }
        text
    }

    /// Its keys in perftest's JSON, in the order of the columns.
    fn json(&self, form: &Form) -> Map<String, Value> {
        let mut object = Map::new();
        if form.only.is_none() {
            object.insert("MsgSize".to_owned(), json!(self.size_bytes));
            object.insert("n_iterations".to_owned(), json!(self.messages));
        }
        let numbers: Vec<(&str, f64, usize)> = match (&self.figures, form.only) {
            (Figures::Bandwidth { mmsg_per_s, .. }, Some(Figure::MessageRate)) => {
                vec![("msgRate_avg", *mmsg_per_s, 6)]
            }
            (Figures::Bandwidth { average, .. }, Some(_)) => vec![("bw_avg", *average, 6)],
            (Figures::Latency([_, _, _, mean, ..]), Some(_)) => vec![("avg_lat", *mean, 6)],
            (Figures::MeanLatency { mean_us, .. }, Some(_)) => vec![("t_avg", *mean_us, 6)],
            (Figures::Bandwidth { peak, average, mmsg_per_s }, None) => {
                let digits = digits(form, *average);
                vec![
                    ("BW_peak", *peak, digits),
                    ("BW_average", *average, digits),
                    ("MsgRate", *mmsg_per_s, 6),
                ]
            }
            (Figures::Latency(times), None) => {
                LATENCY_KEYS.iter().zip(times).map(|(key, time)| (*key, *time, 2)).collect()
            }
            (Figures::MeanLatency { mean_us, per_second }, None) => {
                vec![("t_avg", *mean_us, 2), ("tps_average", *per_second, 2)]
            }
        };
        let cpu = form.with_cpu.then_some(("CPU_util", self.cpu_percent, 2));
        for (key, number, digits) in numbers.into_iter().chain(cpu) {
            // As exact as its text.
            let rounded: Option<f64> = format!("{number:.digits$}").parse().ok();
            object.insert(key.to_owned(), json!(rounded));
        }
        object
    }
}

impl Figures {
    fn head(&self, form: &Form) -> String {
        match self {
            Figures::Bandwidth { .. } => {
                let unit = if form.in_gbits { "Gb/sec" } else { "MiB/sec" };
                format!(
                    " #bytes     #iterations    BW peak[{unit}]    BW average[{unit}]   MsgRate[Mpps]"
                )
            }
            Figures::Latency(_) => {
                " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   \
                 99% percentile[usec]   99.9% percentile[usec] "
                    .to_owned()
            }
            Figures::MeanLatency { .. } => {
                " #bytes        #iterations       t_avg[usec]    tps average".to_owned()
            }
        }
    }
}

const LATENCY_KEYS: [&str; 7] =
    ["t_min", "t_max", "t_typical", "t_avg", "t_stdev", "percentile_99", "percentile_99.9"];

/// perftest shows slow links in Gb/s with more digits.
fn digits(form: &Form, average: f64) -> usize {
    if form.in_gbits && average < 0.1 { 6 } else { 2 }
}

/// Both directions together.
fn bandwidth(form: &Form, flows: &[FlowResult], is_counted: bool) -> Option<Figures> {
    let average: f64 = flows.iter().map(FlowResult::gbit_per_s).sum::<Option<f64>>()?;
    let intervals = flows.iter().map(|flow| flow.bandwidth_gbit_per_s.as_ref());
    let fastest: Option<f64> = intervals.map(|it| Some(it?.max)).sum();
    // perftest computes none over a time.
    let has_peak = is_counted && !form.without_peak;
    Some(Figures::Bandwidth {
        peak: if has_peak { form.in_unit(fastest.unwrap_or(average)) } else { 0.0 },
        average: form.in_unit(average),
        mmsg_per_s: flows.iter().map(FlowResult::mmsg_per_s).sum::<Option<f64>>()?,
    })
}

/// The columns of a latency. perftest prints percentiles of a few messages too.
fn latency_us(latency: &Latency) -> [f64; 7] {
    let histogram = latency.histogram().ok();
    let known = [(0.5, latency.p50), (0.99, latency.p99), (0.999, latency.p99_9)];
    let [median, p99, p99_9] = known.map(|(quantile, known_ns)| {
        let counted_ns = histogram.as_ref().map(|times| times.value_at_quantile(quantile));
        counted_ns.or(known_ns).unwrap_or(latency.max) as f64
    });
    let (min, max) = (latency.min as f64, latency.max as f64);
    [min, max, median, latency.mean, latency.stddev, p99, p99_9].map(|ns| ns / 1e3)
}

/// The part of the time in which the cores of a node's machine worked; 0 if unknown.
fn cpu_percent(node: &str, seconds: f64, run: &Run, result: &ResultFile) -> f64 {
    let used = run.node(node).and_then(|it| it.machine_cpu_seconds).unwrap_or(0.0);
    let cores = result.node(node).and_then(|it| it.host.cores).unwrap_or(0);
    let available = seconds * f64::from(cores);
    if available > 0.0 { (used / available * 100.0).min(100.0) } else { 0.0 }
}

impl Form {
    fn node(&self) -> &'static str {
        if self.is_server { SERVER } else { CLIENT }
    }

    fn in_unit(&self, gbit_per_s: f64) -> f64 {
        if self.in_gbits { gbit_per_s } else { gbit_per_s * 1e9 / 8.0 / f64::from(1 << 20) }
    }
}

/// A line about the test; in JSON alone if it has no label.
struct Fact {
    label: &'static str,
    key: &'static str,
    value: Value,
}

/// So many facts stand two in a line.
const OF_PAIRS: usize = 6;

impl Fact {
    fn new(label: &'static str, key: &'static str, value: impl Into<Value>) -> Fact {
        Fact { label, key, value: value.into() }
    }

    fn switch(label: &'static str, key: &'static str, is_on: bool) -> Fact {
        Fact::new(label, key, if is_on { "ON" } else { "OFF" })
    }

    fn text(&self) -> Option<String> {
        let unit = if matches!(self.key, "Mtu" | "Max_inline_data") { "[B]" } else { "" };
        let value = match &self.value {
            Value::String(text) => text.clone(),
            number => number.to_string(),
        };
        (!self.label.is_empty()).then(|| format!("{:<16}: {value}{unit}", self.label))
    }
}

/// What perftest says of a test before its figures.
fn facts(form: &Form, config: &CaseConfig, settings: &Settings, result: &ResultFile) -> Vec<Fact> {
    let flow = config.flows.first();
    let name = flow.and_then(|flow| {
        if form.is_server { flow.to_device.as_deref() } else { flow.from_device.as_deref() }
    });
    let mut devices = result.node(form.node()).into_iter().flat_map(|node| &node.devices);
    let device = devices.find(|device| name.is_none_or(|name| device.name == *name));
    let device_name = device.map_or("", |device| &device.name);
    let link = device.and_then(|device| device.link_layer.as_deref()).unwrap_or("Ethernet");
    let by_cm = settings.connect == ConnectMode::Cm;
    let memory = settings.memory_at.to_string();
    let profile = settings.op.profile();
    let both = settings.bidirectional;
    let tx_depth = if settings.ping_pong { 1 } else { settings.tx_depth };
    let list = [
        Some(Fact::switch("Dual-port", "Dual_port", false)),
        Some(Fact::new("Device", "Device", printable(device_name, MOST_CHARACTERS))),
        Some(Fact::new("Number of qps", "Number_of_qps", settings.qps)),
        Some(Fact::new("Transport type", "Transport_type", "IB")),
        Some(Fact::new(
            "Connection type",
            "Connection_type",
            settings.service.to_string().to_uppercase(),
        )),
        Some(Fact::switch("Using SRQ", "Using_SRQ", settings.recv_queue == RecvQueue::Shared)),
        Some(Fact::switch(
            "PCIe relax order",
            "PCIe_relax_order",
            settings.ordering == Ordering::Relaxed,
        )),
        Some(Fact::switch("ibv_wr* API", "ibv_wr_API", settings.post == CallStyle::Extended)),
        (!form.is_server || both).then(|| Fact::new("TX depth", "TX_depth", tx_depth)),
        (settings.post_list > 1).then(|| Fact::new("Post List", "Post_List", settings.post_list)),
        (profile.receives && (form.is_server || both))
            .then(|| Fact::new("RX depth", "RX_depth", settings.rx_depth)),
        (!settings.ping_pong)
            .then(|| Fact::new("CQ Moderation", "CQ_Moderation", settings.signal_every)),
        Some(Fact::new("Mtu", "Mtu", flow.and_then(|flow| flow.path_mtu).unwrap_or(0))),
        Some(Fact::new("Link type", "Link_type", printable(link, MOST_CHARACTERS))),
        device.and_then(|it| it.gid_index).map(|index| Fact::new("GID index", "GID_index", index)),
        (!profile.fetches)
            .then(|| Fact::new("Max inline data", "Max_inline_data", settings.inline_bytes)),
        settings
            .max_rd_atomic
            .filter(|_| profile.fetches)
            .map(|outstanding| Fact::new("Outstand reads", "Outstand_reads", outstanding)),
        Some(Fact::switch("rdma_cm QPs", "rdma_cm_QPs", by_cm)),
        Some(Fact::switch("", "Use_ROCm_memory", memory.contains("rocm"))),
        Some(Fact::switch("", "Use_MUSA_memory", false)),
        Some(Fact::new(
            "Data ex. method",
            "Data_ex_method",
            if by_cm { "rdma_cm" } else { "Ethernet" },
        )),
    ];
    list.into_iter().flatten().collect()
}

/// What perftest calls the test.
fn title(settings: &Settings) -> String {
    let op = match settings.op {
        Workload::Transfer(Op::Send) => "Send",
        Workload::Transfer(Op::SendImm) => "Send_imm",
        Workload::Transfer(Op::WriteImm) => "RDMA_Write_imm",
        Workload::Transfer(Op::Read) => "RDMA_Read",
        Workload::Transfer(Op::FetchAdd) => "Atomic FETCH_AND_ADD",
        Workload::Transfer(Op::CompareSwap) => "Atomic CMP_AND_SWAP",
        Workload::Transfer(Op::Write) | Workload::Connect => "RDMA_Write",
    };
    let both = if settings.bidirectional { "Bidirectional " } else { "" };
    let list = if settings.post_list > 1 { "Post List " } else { "" };
    let kind = if settings.ping_pong { "Latency" } else { "BW" };
    format!("{op} {both}{list}{kind} Test")
}

fn write_json(
    path: &Path,
    form: &Form,
    row: &Row,
    facts: Vec<Fact>,
    settings: &Settings,
) -> io::Result<()> {
    let mut info = Map::new();
    info.insert("test".to_owned(), json!(title(settings).replace(' ', "_")));
    info.extend(facts.into_iter().map(|fact| (fact.key.to_owned(), fact.value)));
    let document = json!({ "test_info": info, "results": row.json(form) });
    write_whole(path, |mut out| {
        serde_json::to_writer_pretty(&mut out, &document)?;
        writeln!(out)
    })
    .map_err(io::Error::other)
}

#[cfg(test)]
#[path = "perftest_tests.rs"]
mod tests;
