//! Results as perftest prints them, for the programs that read its output: its table, its JSON and a bare number. Names,
//! order and units are those of perftest 6.29, and so of 4.5 but for `MiB`, which 4.5 calls `MB`.

use std::io::{self, Write};
use std::path::PathBuf;

use results::model::{CLIENT, FlowResult, Latency, ResultFile, Run, SERVER, Totals};
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
    /// The settings, and what the JSON says of the test; none before QPs connect.
    test: Option<(Settings, Map<String, Value>)>,
    /// The best bandwidth and message rate of a row.
    best: Option<[f64; 2]>,
}

/// What is known of a test when its QPs connect.
#[derive(Debug)]
pub struct Connecting<'a> {
    pub settings: &'a Settings,
    /// This end's, with the index of its GID.
    pub device: &'a str,
    pub gid_index: Option<u32>,
    pub is_infiniband: bool,
    pub mtu_bytes: u32,
    /// READs outstanding on one QP.
    pub outstanding_reads: u8,
    /// The QPs of this end and of the other.
    pub local: Vec<Address>,
    pub remote: Vec<Address>,
}

/// A QP, and the memory that the other end may access; 0 where there is none.
#[derive(Clone, Debug, PartialEq)]
pub struct Address {
    pub lid: u16,
    pub gid: [u8; 16],
    pub qpn: u32,
    pub psn: u32,
    pub rkey: u32,
    pub address: u64,
}

impl<W: Write> PerftestTable<W> {
    pub fn new(out: W, form: Form) -> PerftestTable<W> {
        PerftestTable { out, form, test: None, best: None }
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

    /// The QPs of a run connect: the header, with the addresses of the first ones.
    ///
    /// # Errors
    /// The stream's.
    pub fn connects(&mut self, ends: &Connecting<'_>) -> io::Result<()> {
        let (facts, settings) = (facts(&self.form, ends), ends.settings);
        if self.form.only.is_none() && self.test.is_none() {
            let mut lines = vec![LINE.to_owned(), format!("{:20}{}", "", title(settings))];
            let shown: Vec<String> = facts.iter().filter_map(line).collect();
            let (pairs, single) = shown.split_at(OF_PAIRS.min(shown.len()));
            lines.extend(pairs.chunks(2).map(|pair| format!(" {}", pair.join("\t\t"))));
            lines.extend(single.iter().map(|text| format!(" {text}")));
            if settings.memory_at.has_gpu() {
                let (bytes, place) = (settings.size_bytes, settings.memory_at);
                lines.push(format!("allocated {bytes} bytes of GPU buffer at {place}"));
            }
            lines.push(LINE.to_owned());
            lines.extend(ends.local.iter().map(|it| format!(" local {}", it.text(ends))));
            lines.extend(ends.remote.iter().map(|it| format!(" remote {}", it.text(ends))));
            lines.push(LINE.to_owned());
            if self.form.has_rows(settings) {
                let cpu = if self.form.with_cpu { "    CPU_Util[%]" } else { "" };
                lines.push(Shape::from_settings(settings).head(&self.form) + cpu);
            }
            writeln!(self.out, "{}", lines.join("\n"))?;
        }
        let mut info = Map::new();
        info.insert("test".to_owned(), json!(title(settings).replace(' ', "_")));
        info.extend(facts.into_iter().map(|fact| (key(&fact), fact.1)));
        self.test = Some((settings.clone(), info));
        self.out.flush()
    }

    /// A run that has figures.
    ///
    /// # Errors
    /// The stream's, or the JSON file's.
    pub fn run(&mut self, run: &Run, result: &ResultFile) -> io::Result<()> {
        let test = self.test.as_ref().filter(|_| !self.form.is_endless || self.form.is_server);
        let row = test.and_then(|(settings, _)| Row::new(&self.form, settings, run, result));
        row.map_or(Ok(()), |row| self.row(&row))
    }

    /// A period of a run without an end, in which so much was moved.
    ///
    /// # Errors
    /// The stream's, or the JSON file's.
    pub fn period(&mut self, moved: &Totals) -> io::Result<()> {
        let flow = FlowResult { totals: moved.clone(), ..FlowResult::default() };
        let values = bandwidth(&self.form, &[flow], false);
        let (Some((settings, _)), Some(values)) = (&self.test, values) else {
            return Ok(());
        };
        let (size_bytes, messages) = (settings.size_bytes, moved.messages);
        let shape = Shape::Bandwidth;
        self.row(&Row { size_bytes, messages, shape, values, cpu_percent: 0.0 })
    }

    /// What no row has reached that one had to; `None` before the first row.
    pub fn missed(&self) -> Option<&'static str> {
        let least = [self.form.least_bandwidth, self.form.least_mmsg_per_s];
        let mut pairs = least.iter().zip(self.best.iter().flatten());
        let place = pairs.position(|(limit, best)| limit.is_some_and(|it| it > *best))?;
        Some(["BW result is below bw limit", "Msg rate is below msg_rate limit"][place])
    }

    /// No run follows.
    ///
    /// # Errors
    /// The stream's.
    pub fn end(&mut self) -> io::Result<()> {
        let has_table = self.test.as_ref().is_some_and(|(it, _)| self.form.has_rows(it));
        if has_table && self.form.only.is_none() {
            writeln!(self.out, "{LINE}")?;
        }
        self.out.flush()
    }

    fn row(&mut self, row: &Row) -> io::Result<()> {
        let Some((_, info)) = self.test.as_ref().filter(|(it, _)| self.form.has_rows(it)) else {
            return Ok(());
        };
        if let (Shape::Bandwidth, [_, average, mmsg_per_s]) = (row.shape, &row.values[..]) {
            let best = self.best.unwrap_or_default();
            self.best = Some([best[0].max(*average), best[1].max(*mmsg_per_s)]);
        }
        writeln!(self.out, "{}", row.text(&self.form))?;
        self.out.flush()?;
        let Some(path) = &self.form.json else {
            return Ok(());
        };
        let document = json!({ "test_info": info, "results": row.json(&self.form) });
        write_whole(path, |mut out| {
            serde_json::to_writer_pretty(&mut out, &document)?;
            writeln!(out)
        })
        .map_err(io::Error::other)
    }
}

impl Address {
    fn text(&self, ends: &Connecting<'_>) -> String {
        let [lid, qpn, psn] = [(self.lid.into(), 4), (self.qpn.into(), 6), (self.psn.into(), 6)]
            .map(|(value, width)| hex(value, width));
        let mut text = format!("address: LID {lid} QPN {qpn} PSN {psn}");
        if ends.settings.op == Workload::Transfer(Op::Read) {
            text += &format!(" OUT {}", hex(ends.outstanding_reads.into(), 4));
        }
        if matches!(ends.settings.op, Workload::Transfer(Op::Read | Op::Write)) {
            let (rkey, address) = (hex(self.rkey.into(), 8), hex(self.address, 16));
            text += &format!(" RKey {rkey} VAddr {address}");
        }
        if ends.gid_index.is_some() {
            let bytes = self.gid.map(|byte| format!("{byte:02}"));
            text += &format!("\n GID: {}", bytes.join(":"));
        }
        text
    }
}

/// As perftest writes it: zeros have no `0x`.
fn hex(value: u64, width: usize) -> String {
    if value == 0 { "0".repeat(width) } else { format!("{value:#0width$x}") }
}

/// One row of the table.
#[derive(Debug)]
struct Row {
    size_bytes: u32,
    messages: u64,
    shape: Shape,
    /// One for each column, in its unit.
    values: Vec<f64>,
    cpu_percent: f64,
}

/// Which columns a row has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// In the unit of the form, and 10^6 messages a second.
    Bandwidth,
    /// Of a number of messages, in microseconds.
    Latency,
    /// Of a time: in microseconds, and messages a second.
    MeanLatency,
}

impl Row {
    /// Of a run; `None` if that has no figures.
    fn new(form: &Form, settings: &Settings, run: &Run, result: &ResultFile) -> Option<Row> {
        let flow = run.flows.first().filter(|_| run.failure.is_none())?;
        let is_counted = matches!(settings.stop(), Stop::MessagesPerQp(_));
        let shape = Shape::from_settings(settings);
        let values = match shape {
            Shape::Bandwidth => bandwidth(form, &run.flows, is_counted)?,
            Shape::Latency => latency_us(flow.latency_ns.as_ref()?),
            Shape::MeanLatency => {
                vec![flow.latency_ns.as_ref()?.mean / 1e3, flow.mmsg_per_s()? * 1e6]
            }
        };
        Some(Row {
            size_bytes: settings.size_bytes,
            messages: flow.totals.messages,
            shape,
            values,
            cpu_percent: cpu_percent(form.node(), flow.window.seconds, run, result),
        })
    }

    /// Names in perftest's JSON, blanks before the columns, figures, and their digits behind the point.
    fn columns(&self, form: &Form) -> impl Iterator<Item = (&'static str, usize, f64, usize)> {
        let of_bandwidth = self.values.get(1).map_or(2, |average| digits(form, *average));
        self.shape.columns().iter().zip(&self.values).map(move |((key, gap), value)| {
            let digits = match *key {
                "MsgRate" => 6,
                key if key.starts_with("BW_") => of_bandwidth,
                _ => 2,
            };
            (*key, *gap, *value, digits)
        })
    }

    fn text(&self, form: &Form) -> String {
        if let Some(figure) = form.only {
            return format!("{:.6}", self.values[self.shape.only(figure).1]);
        }
        let (blanks, width) = match self.shape {
            Shape::Bandwidth => (4, 10),
            Shape::Latency => (1, 11),
            Shape::MeanLatency => (7, 10),
        };
        let mut text = format!(" {:<7}{:blanks$}{:<width$}", self.size_bytes, "", self.messages);
        for (_, gap, value, digits) in self.columns(form) {
            text += &format!("{:gap$}{value:<7.digits$}", "");
        }
        if form.with_cpu {
            text += &format!("    {:<3.2}", self.cpu_percent);
        }
        text
    }

    /// Its keys in perftest's JSON, in the order of the columns.
    fn json(&self, form: &Form) -> Map<String, Value> {
        let mut object = Map::new();
        let mut numbers: Vec<(&str, f64, usize)> = Vec::new();
        if let Some(figure) = form.only {
            let (key, place) = self.shape.only(figure);
            numbers.push((key, self.values[place], 6));
        } else {
            object.insert("MsgSize".to_owned(), json!(self.size_bytes));
            object.insert("n_iterations".to_owned(), json!(self.messages));
            numbers.extend(self.columns(form).map(|(key, _, value, digits)| (key, value, digits)));
        }
        numbers.extend(form.with_cpu.then_some(("CPU_util", self.cpu_percent, 2)));
        for (key, number, digits) in numbers {
            // As exact as its text.
            let rounded: Option<f64> = format!("{number:.digits$}").parse().ok();
            object.insert(key.to_owned(), json!(rounded));
        }
        object
    }
}

impl Shape {
    fn from_settings(settings: &Settings) -> Shape {
        match settings.stop() {
            _ if !settings.ping_pong => Shape::Bandwidth,
            Stop::MessagesPerQp(_) => Shape::Latency,
            Stop::DurationNs(_) => Shape::MeanLatency,
        }
    }

    fn columns(self) -> &'static [(&'static str, usize)] {
        match self {
            Shape::Bandwidth => &[("BW_peak", 7), ("BW_average", 12), ("MsgRate", 12)],
            Shape::Latency => &[
                ("t_min", 3),
                ("t_max", 8),
                ("t_typical", 6),
                ("t_avg", 10),
                ("t_stdev", 8),
                ("percentile_99", 10),
                ("percentile_99.9", 16),
            ],
            Shape::MeanLatency => &[("t_avg", 7), ("tps_average", 8)],
        }
    }

    /// The key and the column of a figure that is printed alone.
    fn only(self, figure: Figure) -> (&'static str, usize) {
        match self {
            Shape::Bandwidth if figure == Figure::MessageRate => ("msgRate_avg", 2),
            Shape::Bandwidth => ("bw_avg", 1),
            Shape::Latency => ("avg_lat", 3),
            Shape::MeanLatency => ("t_avg", 0),
        }
    }

    fn head(self, form: &Form) -> String {
        match self {
            Shape::Bandwidth => {
                let unit = if form.in_gbits { "Gb/sec" } else { "MiB/sec" };
                format!(
                    " #bytes     #iterations    BW peak[{unit}]    BW average[{unit}]   MsgRate[Mpps]"
                )
            }
            Shape::Latency => {
                " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   \
                 99% percentile[usec]   99.9% percentile[usec] "
                    .to_owned()
            }
            Shape::MeanLatency => {
                " #bytes        #iterations       t_avg[usec]    tps average".to_owned()
            }
        }
    }
}

/// perftest shows slow links in Gb/s with more digits.
fn digits(form: &Form, average: f64) -> usize {
    if form.in_gbits && average < 0.1 { 6 } else { 2 }
}

/// The columns of a bandwidth, of both directions together.
fn bandwidth(form: &Form, flows: &[FlowResult], is_counted: bool) -> Option<Vec<f64>> {
    let average: f64 = flows.iter().map(FlowResult::gbit_per_s).sum::<Option<f64>>()?;
    let intervals = flows.iter().map(|flow| flow.bandwidth_gbit_per_s.as_ref());
    let fastest: Option<f64> = intervals.map(|it| Some(it?.max)).sum();
    // perftest computes none over a time.
    let has_peak = is_counted && !form.without_peak;
    let peak = if has_peak { form.in_unit(fastest.unwrap_or(average)) } else { 0.0 };
    let mmsg_per_s = flows.iter().map(FlowResult::mmsg_per_s).sum::<Option<f64>>()?;
    Some(vec![peak, form.in_unit(average), mmsg_per_s])
}

/// The columns of a latency: min, max, median, mean, standard deviation, p99 and p99.9. perftest prints percentiles of a few
/// messages too.
fn latency_us(latency: &Latency) -> Vec<f64> {
    let histogram = latency.histogram().ok();
    let known = [(0.5, latency.p50), (0.99, latency.p99), (0.999, latency.p99_9)];
    let [median, p99, p99_9] = known.map(|(quantile, known_ns)| {
        let counted_ns = histogram.as_ref().map(|times| times.value_at_quantile(quantile));
        counted_ns.or(known_ns).unwrap_or(latency.max) as f64
    });
    let (min, max) = (latency.min as f64, latency.max as f64);
    [min, max, median, latency.mean, latency.stddev, p99, p99_9].map(|ns| ns / 1e3).into()
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

    /// Whether there are any: the adapter alone answers READs and atomics, so the server measures no latency.
    fn has_rows(&self, settings: &Settings) -> bool {
        !self.is_server || settings.is_answered() || !settings.ping_pong
    }

    fn in_unit(&self, gbit_per_s: f64) -> f64 {
        if self.in_gbits { gbit_per_s } else { gbit_per_s * 1e9 / 8.0 / f64::from(1 << 20) }
    }
}

/// So many facts stand two in a line.
const OF_PAIRS: usize = 6;

/// What perftest says of a test: what it is called in its lines, of which the keys in JSON are made, and what it is.
type Fact = (&'static str, Value);

fn key((label, _): &Fact) -> String {
    label.replace([' ', '-'], "_").replace(['*', '.'], "")
}

/// Its line; `None` for what is in JSON alone.
fn line((label, value): &Fact) -> Option<String> {
    let unit = if matches!(*label, "Mtu" | "Max inline data") { "[B]" } else { "" };
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    (!label.ends_with("memory")).then(|| format!("{label:<16}: {text}{unit}"))
}

fn switch(is_on: bool) -> Value {
    if is_on { "ON" } else { "OFF" }.into()
}

fn facts(form: &Form, ends: &Connecting<'_>) -> Vec<Fact> {
    let settings = ends.settings;
    let link = if ends.is_infiniband { "IB" } else { "Ethernet" };
    let by_cm = settings.connect == ConnectMode::Cm;
    let exchange = if by_cm { "rdma_cm" } else { "Ethernet" };
    let on_rocm = settings.memory_at.to_string().contains("rocm");
    let profile = settings.op.profile();
    let [sends, receives] =
        [!form.is_server, form.is_server].map(|it| it || settings.bidirectional);
    let tx_depth = if settings.ping_pong { 1 } else { settings.tx_depth };
    let list = [
        (true, "Dual-port", switch(false)),
        (true, "Device", printable(ends.device, MOST_CHARACTERS).into()),
        (true, "Number of qps", settings.qps.into()),
        (true, "Transport type", "IB".into()),
        (true, "Connection type", settings.service.name().to_uppercase().into()),
        (true, "Using SRQ", switch(settings.recv_queue == RecvQueue::Shared)),
        (true, "PCIe relax order", switch(settings.ordering == Ordering::Relaxed)),
        (true, "ibv_wr* API", switch(settings.post == CallStyle::Extended)),
        (sends, "TX depth", tx_depth.into()),
        (settings.post_list > 1, "Post List", settings.post_list.into()),
        (receives && profile.receives, "RX depth", settings.rx_depth.into()),
        (!settings.ping_pong, "CQ Moderation", settings.signal_every.into()),
        (true, "Mtu", ends.mtu_bytes.into()),
        (true, "Link type", link.into()),
        (ends.gid_index.is_some(), "GID index", ends.gid_index.into()),
        (!profile.fetches, "Max inline data", settings.inline_bytes.into()),
        (profile.fetches, "Outstand reads", ends.outstanding_reads.into()),
        (true, "rdma_cm QPs", switch(by_cm)),
        (true, "Use ROCm memory", switch(on_rocm)),
        (true, "Use MUSA memory", switch(false)),
        (true, "Data ex. method", exchange.into()),
    ];
    let here = list.into_iter().filter(|(is_here, ..)| *is_here);
    here.map(|(_, label, value)| (label, value)).collect()
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

#[cfg(test)]
#[path = "perftest_tests.rs"]
mod tests;
